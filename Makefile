# TensorFusion's names for what cargo does here. docs/tensorfusion.md describes them.

CONTAINER_TOOL ?= docker
IMG_REGISTRY ?= localhost
# From make's command line alone: provider-config.yaml names the tag, and a VERSION of the shell may be any program's.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Such as --build-arg BASE=ubuntu:24.04
BUILD_FLAGS ?=

$(foreach name,CONTAINER_TOOL IMG_REGISTRY VERSION,$(if $(strip $($(name))),,$(error $(name) is empty: give it a value, or \
    leave it out and run make at the top of the repository)))

IMAGE = $(IMG_REGISTRY)/tensor-fusion-amd-provider:$(VERSION)
PROVIDER = target/provider
REMOTE = target/hip-remote
compile = $(CC) -std=c11 -Wall -Wextra -I$(PROVIDER) -o $(PROVIDER)/$(1) crates/accelerator-amd/tests/c/$(1).c -ldl -pthread

.PHONY: help amd hip-client-stub hip-remote test-amd-run dump-amd docker-build-amd-provider docker-build-amd-provider-therock \
    docker-push-amd-provider docker-push-amd-provider-therock \
    docker-build-hip-client docker-build-hip-worker docker-push-hip-client docker-push-hip-worker

help:
	@echo "make amd                                 builds $(PROVIDER)/libaccelerator_amd.so"
	@echo "make test-amd-run                        and tests it on this machine's GPUs"
	@echo "make dump-amd                            and prints what it says of this machine's GPUs"
	@echo "make hip-remote                          builds HIP over the network: $(REMOTE)"
	@echo "make hip-client-stub                     and names $(REMOTE)/lib/libhip_client_stub.so"
	@echo "make docker-build-amd-provider           builds $(IMAGE) by $(CONTAINER_TOOL)"
	@echo "make docker-push-amd-provider            pushes it"
	@echo "make docker-build-amd-provider-therock   builds $(IMAGE)-therock, with ROCm"
	@echo "make docker-push-amd-provider-therock    pushes it"
	@echo "make docker-build-hip-client             builds $(IMG_REGISTRY)/tensor-fusion-hip-client:$(VERSION), for pods that use remote GPUs"
	@echo "make docker-build-hip-worker             builds $(IMG_REGISTRY)/tensor-fusion-hip-worker:$(VERSION), which serves them"
	@echo "make docker-push-hip-client              pushes it"
	@echo "make docker-push-hip-worker              pushes it"

amd:
	cargo xtask provider

hip-remote:
	cargo xtask hip-remote

hip-client-stub: hip-remote
	@ls $(REMOTE)/lib/libhip_client_stub.so

test-amd-run: amd
	$(call compile,test_accelerator)
	$(PROVIDER)/test_accelerator $(PROVIDER)/libaccelerator_amd.so

dump-amd: amd
	$(call compile,dump)
	$(PROVIDER)/dump $(PROVIDER)/libaccelerator_amd.so

docker-build-amd-provider: amd
	$(CONTAINER_TOOL) build $(BUILD_FLAGS) --file deploy/tensorfusion/Containerfile --tag $(IMAGE) .

docker-build-amd-provider-therock: amd
	cargo xtask dist
	$(CONTAINER_TOOL) build $(BUILD_FLAGS) --file deploy/tensorfusion/Containerfile.therock --tag $(IMAGE)-therock .

docker-push-amd-provider:
	$(CONTAINER_TOOL) push $(IMAGE)

docker-push-amd-provider-therock:
	$(CONTAINER_TOOL) push $(IMAGE)-therock

docker-build-hip-client docker-build-hip-worker: docker-build-%: hip-remote
	$(CONTAINER_TOOL) build $(BUILD_FLAGS) --file deploy/tensorfusion/Containerfile.$* \
	    --tag $(IMG_REGISTRY)/tensor-fusion-$*:$(VERSION) .

docker-push-hip-client docker-push-hip-worker: docker-push-%:
	$(CONTAINER_TOOL) push $(IMG_REGISTRY)/tensor-fusion-$*:$(VERSION)
