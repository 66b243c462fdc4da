//! Code objects and fat binaries as hipcc of the distribution makes them.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use hip_code_object::data::has_writable_data;
use hip_code_object::kernel::{Argument, kernels};
use hip_code_object::{Refused, image};

const SOURCE: &str = r#"
#include <hip/hip_runtime.h>
struct Buffers { float *from; float *to; int count; };
extern "C" __global__ void mixed(char small, Buffers buffers, double factor, short last) {
    buffers.to[threadIdx.x] = buffers.from[blockIdx.x * blockDim.x + threadIdx.x] * factor + small + last;
}
extern "C" __global__ void none() {}
extern "C" __global__ __launch_bounds__(128) void shared(int *out) {
    __shared__ int all[128];
    all[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = all[127 - threadIdx.x];
}
"#;

/// A bundle for gfx906 without XNACK and for gfx90a.
fn bundle(level: &str) -> Vec<u8> {
    compile(SOURCE, &[level, "--genco", "--offload-arch=gfx906:xnack-", "--offload-arch=gfx90a"])
}

fn compile(text: &str, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let [source, made] = ["kernels.hip", "kernels"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).unwrap();
    // hipcc leaves folders where it puts its temporary files.
    let mut hipcc = Command::new("hipcc");
    hipcc.args(arguments).arg(&source).arg("-o").arg(&made).env("TMPDIR", folder.path());
    let status = hipcc.status();
    assert!(status.expect("Debian's package hipcc is installed").success());
    std::fs::read(made).unwrap()
}

/// The program's own compressor, since the crates in use here can read alone.
fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut child =
        Command::new("zstd").args(["-q", "-3", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let child = child.as_mut().expect("Debian's package zstd is installed");
    let (mut stdin, input) = (child.stdin.take().unwrap(), bytes.to_vec());
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let mut compressed = Vec::new();
    std::io::Read::read_to_end(child.stdout.as_mut().unwrap(), &mut compressed).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    compressed
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// LLVM's container of a version around a compressed bundle.
fn container(version: u16, method: u16, bundle: &[u8], compressed: &[u8]) -> Vec<u8> {
    let mut made = b"CCOB".to_vec();
    made.extend(version.to_le_bytes());
    made.extend(method.to_le_bytes());
    let narrow = |size: usize| u32::try_from(size).unwrap().to_le_bytes();
    match version {
        1 => made.extend(narrow(bundle.len())),
        2 => made.extend([narrow(24 + compressed.len()), narrow(bundle.len())].concat()),
        _ => made
            .extend([32 + compressed.len(), bundle.len()].map(|size| (size as u64).to_le_bytes()).concat()),
    }
    made.extend([0x5a; 8]);
    made.extend(compressed);
    made
}

fn length(image: &[u8]) -> Result<u64, Refused> {
    image::length(|offset, into| {
        let from = usize::try_from(offset).ok().and_then(|offset| image.get(offset..)?.get(..into.len()));
        from.is_some_and(|from| {
            into.copy_from_slice(from);
            true
        })
    })
}

#[test]
fn arguments_lie_where_the_compiler_put_them_at_each_level_of_optimisation() {
    for level in ["-O0", "-O3"] {
        let bundle = bundle(level);
        let kernels = kernels(&image::code_object(&bundle, "gfx90a:sramecc+:xnack-").unwrap()).unwrap();
        let kernel = |name| kernels.iter().find(|kernel| kernel.name == name).unwrap();
        let mixed = kernel("mixed");
        let places = [(0, 1), (8, 24), (32, 8), (40, 2)].map(|(offset, size)| Argument { offset, size });
        assert_eq!((mixed.arguments.as_slice(), mixed.arguments_size), (places.as_slice(), 42), "{level}");
        assert_eq!((kernel("none").arguments.len(), kernel("none").arguments_size), (0, 0), "{level}");
        let shared = kernel("shared");
        assert_eq!((shared.max_threads_per_block, shared.shared), (128, 512), "{level}");

        let mut out = vec![0xaa];
        mixed.lay_out(&mut out, |number, bytes| bytes.fill(u8::try_from(number).unwrap() + 1));
        let mut expected = vec![0xaa, 1, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([[2; 24].as_slice(), &[3; 8], &[4; 2]].concat());
        assert_eq!(out, expected, "{level}");
    }
}

#[test]
fn code_with_variables_has_writable_data_wherever_they_stand() {
    for (variables, within, writable) in [
        ("", "0", false),
        ("__device__ const int table[2] = {4, 5};", "table[threadIdx.x]", false),
        ("__device__ int all;", "all++", true),
        ("__constant__ int given;", "given", true),
        ("", "({ static __device__ int calls; calls++; })", true),
    ] {
        let text = format!(
            "#include <hip/hip_runtime.h>\n{variables}\n__global__ void kernel(int *out) {{ *out = {within}; }}"
        );
        let bundle = compile(&text, &["-O3", "--genco", "--offload-arch=gfx90a"]);
        let code = image::code_object(&bundle, "gfx90a").unwrap();
        assert_eq!(has_writable_data(&code), writable, "{text}");
    }
}

#[test]
fn a_gpu_gets_the_code_object_of_its_own_processor_and_features() {
    let bundle = bundle("-O3");
    let of_906 = image::code_object(&bundle, "gfx906:sramecc+:xnack-").unwrap();
    let of_90a = image::code_object(&bundle, "gfx90a:sramecc+:xnack+").unwrap();
    assert_ne!(of_906, of_90a);
    // EF_AMDGPU_MACH of AMDGPUUsage, in the ELF header's flags.
    assert_eq!((of_906[48], of_90a[48]), (0x2f, 0x3f));
    for gpu in ["gfx906:sramecc+:xnack+", "gfx1100"] {
        let Err(Refused::NoCodeFor { target, offered }) = image::code_object(&bundle, gpu) else {
            panic!("{gpu} runs no code of this bundle");
        };
        assert_eq!(
            (target.as_str(), offered.as_slice()),
            (gpu, ["gfx906:xnack-", "gfx90a"].map(String::from).as_slice())
        );
    }
}

#[test]
fn an_image_says_its_own_length_whatever_stands_behind_it() {
    let bundle = bundle("-O3");
    let object = image::code_object(&bundle, "gfx90a").unwrap().into_owned();
    let mut images = vec![bundle.clone(), object];
    for version in 1..=3 {
        images.push(container(version, 0, &bundle, &zlib(&bundle)));
        images.push(container(version, 1, &bundle, &zstd(&bundle)));
    }
    for image in images {
        let mut longer = image.clone();
        longer.extend([0x77; 300]);
        assert_eq!(length(&longer), Ok(image.len() as u64));
        // Nothing behind the image is read: no memory may be there.
        assert_eq!(length(&image), Ok(image.len() as u64));
    }
}

#[test]
fn a_compressed_bundle_gives_the_code_object_of_the_plain_one() {
    let bundle = bundle("-O3");
    for gpu in ["gfx906:xnack-", "gfx90a"] {
        let plain = image::code_object(&bundle, gpu).unwrap();
        for version in 1..=3 {
            for (method, compressed) in [(0, zlib(&bundle)), (1, zstd(&bundle))] {
                let image = container(version, method, &bundle, &compressed);
                assert_eq!(
                    image::code_object(&image, gpu).unwrap(),
                    plain,
                    "version {version}, method {method}"
                );
            }
        }
    }
}

/// Of one kernel `vadd` for gfx906 and gfx90a, packed by clang-offload-bundler of LLVM 18, 19 and 22 of Debian.
#[test]
fn what_clang_compressed_gives_its_kernel() {
    for (version, image) in [
        (1, &include_bytes!("captures/clang18.ccob")[..]),
        (2, include_bytes!("captures/clang19.ccob")),
        (3, include_bytes!("captures/clang22.ccob")),
    ] {
        assert_eq!(image[4], version);
        assert_eq!(length(image), Ok(image.len() as u64));
        let kernels = kernels(&image::code_object(image, "gfx90a:sramecc+:xnack-").unwrap()).unwrap();
        assert_eq!((kernels.len(), kernels[0].name.as_str(), kernels[0].arguments_size), (1, "vadd", 28));
    }
}

#[test]
fn a_program_holds_its_bundle_in_a_section_that_says_where_it_ends() {
    let program = compile(SOURCE, &["-O3", "--offload-arch=gfx90a", "-c"]);
    let begin = program.windows(24).position(|bytes| bytes == b"__CLANG_OFFLOAD_BUNDLE__").unwrap();
    let image = &program[begin..];
    let whole = &image[..usize::try_from(length(image).unwrap()).unwrap()];
    assert_eq!(kernels(&image::code_object(whole, "gfx90a").unwrap()).unwrap().len(), 3);
}

#[test]
fn damaged_images_are_refused_and_never_more() {
    let bundle = compile(SOURCE, &["-O3", "--genco", "--offload-arch=gfx90a"]);
    let object = image::code_object(&bundle, "gfx90a").unwrap().into_owned();
    let read = |bytes: &[u8]| {
        let _ = length(bytes);
        image::code_object(bytes, "gfx90a").and_then(|object| {
            has_writable_data(&object);
            kernels(&object)
        })
    };
    assert_eq!(read(&object).unwrap().len(), 3);
    for image in
        [&object, &container(3, 1, &bundle, &zstd(&bundle)), &container(1, 0, &bundle, &zlib(&bundle))]
    {
        for end in (0..image.len()).step_by(29) {
            let _ = read(&image[..end]);
        }
        for at in (0..image.len().min(4000)).step_by(7) {
            for value in [1, 0xff] {
                let mut other = image.clone();
                other[at] = value;
                let _ = read(&other);
            }
        }
    }
    for (bytes, why) in [
        (&b""[..], "ends too early"),
        (b"\x7fELF", "ends within its ELF header"),
        (b"__CLANG_OFFLOAD_BUNDLE__\xff\xff\xff\xff\xff\xff\xff\xff", "entries"),
        (b"CCOB\x04\0\0\0", "version 4"),
        (b"CCOB\x02\0\x07\0aaaabbbbcccccccc", "compression is 7"),
        (b"#!/bin/sh\necho this is no code object", "begins with other bytes"),
    ] {
        let error = image::code_object(bytes, "gfx90a").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
