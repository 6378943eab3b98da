#!/bin/sh
echo "nvcc: not in this image, which holds the CUDA libraries of torch's wheel alone; build one with: yoke image build $(cat /opt/yoke-image/release 2>/dev/null) --with toolkit" >&2
exit 127
