#include "yoke/train/main.hpp"

int main(int argc, char** argv) {
  return yoke::train::eval_main(argc, argv, yoke::train::builtin_models());
}
