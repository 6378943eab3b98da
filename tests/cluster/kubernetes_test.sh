#!/usr/bin/env bash
# usage: kubernetes_test.sh YOKE VALIDATOR
# Emitted manifests against the schema of Kubernetes (kubernetes-validate of PyPI), and what a pod's
# variables mean.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
begin "$1" ''
trap 'rm -rf "$scratch"' EXIT
validator=$2
[[ -x $validator ]] || { echo "kubernetes_test: no $validator (tools/setup --cluster)"; exit 77; }

"$yoke" launch --emit kubernetes --nnodes 2 --nproc-per-node 8 --max-restarts 3 --image registry.example/train:1 \
  -- ./train --lr 0.1 >"$scratch/job.yaml"
for version in 1.29 1.31; do
  code=0
  out=$("$validator" --strict -k "$version" "$scratch/job.yaml" 2>&1) || code=$?
  equal "the Job and its Service fit Kubernetes $version" "$code" 0
  ((code == 0)) || echo "$out"
done
# The validator sees each object alone: what binds them is looked at here.
manifest=$(<"$scratch/job.yaml")
expect 'the Service selects the pods' "$manifest" '^    yoke-job: train$'
equal 'the label stands in both' "$(grep -c 'yoke-job: train' "$scratch/job.yaml")" 2
expect 'the pods are in the Service' "$manifest" '^ +subdomain: train$'
expect 'the first pod is the meeting point' "$manifest" '"train-0.train:29400"'

# A broken one is seen, so the validator looks.
sed 's/completions: 2/completions: two/' "$scratch/job.yaml" >"$scratch/broken.yaml"
code=0
"$validator" --strict -k 1.29 "$scratch/broken.yaml" >/dev/null 2>&1 || code=$?
equal 'a broken manifest is seen' "$code" 1
finish
