#!/usr/bin/env bash
# Isomer on a GPU, in one command and under ten minutes: build against the active Python's PyTorch,
# run campaign.py, and leave its figures in OUT. Where no registry is reachable, --debs names
# a folder of Debian packages, which are unpacked and not installed;
# `tests/gpu/run.sh --fetch-debs DIR` fills one elsewhere.
#   --dry         no GPU: the CPU is treated as a device with memory of its own
#                 (validate/exec/device.h)
#   --quick       a few of everything
#   --debs DIR    take compilers' headers and libraries from the packages in DIR
#   --out DIR     where gpu.json and gpu.md go (build-gpu/out)
#   --build DIR   build there (build-gpu), or take the build that is there with --no-build
set -eu
cd "$(dirname "$0")/../.."
dry= quick= debs= out= build=build-gpu make=yes
packages="libz3-4 libz3-dev libgmp10 libgmp-dev libmpfr6 libmpfr-dev libjansson4 libjansson-dev
  libminizip1 libminizip-dev zlib1g zlib1g-dev libxxhash0 libxxhash-dev libnettle8 nettle-dev
  uthash-dev check libsubunit0 libsubunit-dev"
stop() { echo "gpu: $*" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case "$1" in
  --dry) dry=yes ;;
  --quick) quick=yes ;;
  --no-build) make= ;;
  --debs | --out | --build | --fetch-debs)
    [ $# -gt 1 ] || stop "$1 takes a folder"
    if [ "$1" = --fetch-debs ]; then
      mkdir -p "$2"
      cd "$2"
      # shellcheck disable=SC2086
      exec apt-get download $packages
    fi
    printf -v "${1#--}" %s "$2"
    shift
    ;;
  *) stop "unknown option $1" ;;
  esac
  shift
done
out=${out:-$build/out}
mkdir -p "$build" "$out"

if [ -n "$debs" ]; then
  root=$PWD/$build/root
  mkdir -p "$root"
  for package in "$debs"/*.deb; do
    [ -e "$package" ] || stop "no Debian packages in $debs"
    dpkg-deb -x "$package" "$root"
  done
  # A few links name the file where an installed package would have it.
  find "$root" -xtype l -lname '/*' | while read -r link; do
    ln -sfn "$root$(readlink "$link")" "$link"
  done
  libraries=$root/usr/lib/$(gcc -print-multiarch 2> /dev/null || echo x86_64-linux-gnu)
  export C_INCLUDE_PATH=$root/usr/include CPLUS_INCLUDE_PATH=$root/usr/include
  export LIBRARY_PATH=$libraries:$root/usr/lib:$root/lib
  export LD_LIBRARY_PATH=$libraries:$root/usr/lib:$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

python=python3
if ! python3 -c 'import torch' 2> /dev/null && [ -x .venv/bin/python3 ]; then
  python=.venv/bin/python3
fi
if [ -z "$dry" ]; then
  $python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2> /dev/null ||
    stop "$python has no PyTorch that sees a GPU; --dry goes without one"
fi
if [ -n "$make" ]; then
  echo "gpu: building into $build"
  make -s -j "$(nproc)" B="$build" all || stop "the build failed"
fi
exec $python tests/gpu/campaign.py --isomer "$build/isomer" --out "$out" \
  ${dry:+--dry} ${quick:+--quick}
