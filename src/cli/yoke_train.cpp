#include "yoke/train/main.hpp"

int main(int argc, char** argv) {
  return yoke::train::main(argc, argv, yoke::train::builtin_models());
}
