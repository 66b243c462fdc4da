//! Code objects and launches.

use hip_protocol::calls::*;
use hip_protocol::envelope::NO_REPLY;
use hip_protocol::message::MAX_CHUNK;
use hip_transport::sha256;

use crate::client::{Client, Failed};
use crate::worker::Worker;

/// How many milliseconds a kernel takes of which a test sees the end, and before whose end a slow machine does the rest.
pub const SLOW: &str = "6000";
/// `hipErrorNotReady`: the kernel still runs.
pub const NOT_READY: Failed = Failed::Now(600);

/// The code object of vadd, as a client finds it in the program.
pub fn vadd() -> Vec<u8> {
    let bundle = std::fs::read(test_gpu::built::compile_code_object("vadd")).unwrap();
    hip_code_object::image::code_object(&bundle, "gfx90a:sramecc+:xnack-").unwrap().into_owned()
}

/// Loads a code object: the module, and how many bytes were sent for it.
pub fn load(client: &mut Client, image: &[u8]) -> (u64, usize) {
    let (sha256, bytes) = (sha256(image), image.len() as u64);
    match client.call(ModuleLoad { sha256, bytes }).unwrap().module {
        0 => (send(client, sha256, image).unwrap(), image.len()),
        module => (module, 0),
    }
}

fn send(client: &mut Client, sha256: [u8; 32], image: &[u8]) -> Result<u64, Failed> {
    let id = client.send(ModuleImage { sha256, bytes: image.len() as u64 }, 0, &[]);
    for chunk in image.chunks(MAX_CHUNK) {
        client.chunk(ModuleImage::OP, id, chunk).unwrap();
    }
    Ok(client.reply::<ModuleImage>(id)?.module)
}

/// The only kernel of a code object, as the metadata names it.
pub fn kernel(image: &[u8]) -> hip_code_object::kernel::Kernel {
    hip_code_object::kernel::kernels(image).unwrap().remove(0)
}

/// Launches vadd, which takes as long as `TEST_GPU_SLOW_MS` says.
pub fn launch(client: &mut Client) {
    launch_on(client, 0);
}

pub fn launch_on(client: &mut Client, stream: u64) {
    let image = vadd();
    let (module, _) = load(client, &image);
    let kernel = kernel(&image);
    let function = client.call_with(ModuleFunction { module }, kernel.name.as_bytes()).unwrap().function;
    let call = Launch { function, grid: [1; 3], block: [64, 1, 1], shared: 0, stream };
    client.send(call, NO_REPLY, &vec![0; kernel.arguments_size]);
}

#[test]
fn a_code_object_is_sent_once_and_its_kernel_computes() {
    let worker = Worker::start(&[], &[]);
    let image = vadd();
    let kernel = kernel(&image);
    for expected in [image.len(), 0] {
        let mut client = worker.client();
        let (module, sent) = load(&mut client, &image);
        assert_eq!(sent, expected);
        let function = client.call_with(ModuleFunction { module }, kernel.name.as_bytes()).unwrap().function;
        let count = 1000_u32;
        let pointers = [0; 3].map(|_| client.malloc(u64::from(count) * 4));
        let inputs: [Vec<u8>; 2] = [1.5_f32, 0.25]
            .map(|factor| (0..count).flat_map(|at| (at as f32 * factor).to_le_bytes()).collect());
        for (pointer, input) in pointers.iter().zip(&inputs) {
            client.put(*pointer, input);
        }
        let mut arguments: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        arguments.extend(count.to_le_bytes());
        assert_eq!(arguments.len(), kernel.arguments_size, "the program's parameters are as the test thinks");
        client.launch(function, count.div_ceil(64), 64, &arguments);
        let result = client.get(pointers[2], u64::from(count) * 4);
        let expected: Vec<u8> =
            (0..count).flat_map(|at| (at as f32 * 1.5 + at as f32 * 0.25).to_le_bytes()).collect();
        assert!(result == expected);
        assert!(client.call(FunctionAttribute { function, attribute: 0 }).unwrap().value > 0);
        assert!(client.call(Occupancy { function, block: 64, shared: 0, flags: 0 }).unwrap().blocks > 0);
        client.call(ModuleUnload { module }).unwrap();
        client.launch(function, 1, 64, &arguments);
        assert_eq!(client.sync(0), Err(Failed::Earlier(98)));
    }
}

#[test]
fn a_launch_whose_arguments_are_not_the_kernels_is_refused() {
    let worker = Worker::start(&[], &[]);
    let image = vadd();
    let mut client = worker.client();
    let (module, _) = load(&mut client, &image);
    let kernel = kernel(&image);
    let function = client.call_with(ModuleFunction { module }, kernel.name.as_bytes()).unwrap().function;
    for length in [0, kernel.arguments_size - 1, kernel.arguments_size + 1, 4000] {
        client.launch(function, 1, 64, &vec![0; length]);
        assert_eq!(client.sync(0), Err(Failed::Earlier(1)), "{length}");
    }
    assert!(client.call_with(ModuleFunction { module }, b"no such kernel").is_err());
    assert!(client.call_with(ModuleFunction { module }, b"a\0b").is_err());
    assert!(client.call_with(ModuleGlobal { module }, b"no such variable").is_err());
}

#[test]
fn code_that_is_not_what_was_announced_is_refused() {
    let worker = Worker::start(&[], &[]);
    let image = vadd();
    let mut client = worker.client();
    let mut other = image.clone();
    other[100] ^= 1;
    assert_eq!(send(&mut client, sha256(&image), &other), Err(Failed::Now(200)));
    assert_eq!(
        client.call(ModuleLoad { sha256: sha256(&image), bytes: image.len() as u64 }).unwrap().module,
        0
    );
    assert_eq!(send(&mut client, sha256(b"no ELF"), b"no ELF"), Err(Failed::Now(200)));
    assert!(load(&mut client, &image).0 != 0);
}

#[test]
fn one_lanes_wait_stalls_no_other() {
    let worker = Worker::start(&[], &[("TEST_GPU_SLOW_MS", SLOW)]);
    let image = vadd();
    let mut client = worker.client();
    let (module, _) = load(&mut client, &image);
    let kernel = kernel(&image);
    let function = client.call_with(ModuleFunction { module }, kernel.name.as_bytes()).unwrap().function;
    client.launch(function, 1, 64, &vec![0; kernel.arguments_size]);
    let wait = client.send(DeviceSync {}, 0, &[]);
    client.lane = 1;
    for _ in 0..100 {
        client.call(Ping {}).unwrap();
        client.call(MemoryInfo {}).unwrap();
    }
    assert_eq!(client.call(StreamQuery { stream: 0 }), Err(NOT_READY));
    client.lane = 0;
    client.reply::<DeviceSync>(wait).unwrap();
    assert_eq!(client.call(StreamQuery { stream: 0 }), Ok(()));
}
