//! A client of version 1.

use std::io::IoSlice;
use std::time::Duration;

use hip_protocol::v1::{Answer, Reply, Request};

use crate::client::{PATIENCE, pattern};
use crate::worker::{Worker, eventually};

#[test]
fn a_client_of_version_1_copies_and_cannot_launch() {
    let worker = Worker::start(&["--silence", "1"], &[]);
    let (mut reader, mut writer) = hip_transport::connect(&worker.address(), None, PATIENCE).unwrap();
    let mut id = 0;
    let mut call = |request: Request<'_>| -> Result<Vec<u8>, u32> {
        id += 1;
        let mut out = Vec::new();
        request.put(id, &mut out);
        writer.write(&mut [IoSlice::new(&out)]).unwrap();
        let message = reader.next().unwrap();
        assert_eq!((message.version, message.op, message.id), (1, request.op(), id));
        let payload = reader.bytes(message.length).unwrap();
        let Reply { status, answer } = Reply::parse(message.op, payload).unwrap();
        match answer {
            _ if status != 0 => Err(status),
            Answer::Nothing => Ok(Vec::new()),
            Answer::Count(number) | Answer::Pointer(number) => Ok(number.to_le_bytes().to_vec()),
            Answer::Data(data) => Ok(data.to_vec()),
        }
    };
    let number = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().unwrap());
    assert_eq!(number(call(Request::DeviceCount).unwrap()), 1);
    let data = pattern(1 << 20);
    let size = data.len() as u64;
    let pointer = number(call(Request::Malloc { size }).unwrap());
    // It has no heartbeat.
    std::thread::sleep(Duration::from_millis(2500));
    call(Request::HostToDevice { pointer, data: &data }).unwrap();
    assert!(call(Request::DeviceToHost { pointer, size }).unwrap() == data);
    assert_eq!(call(Request::HostToDevice { pointer: pointer + 1, data: &data }), Err(17));
    assert_eq!(call(Request::DeviceToHost { pointer, size: u64::MAX }), Err(1));
    assert_eq!(call(Request::Launch), Err(98));
    assert_eq!(call(Request::StreamSync { stream: 0 }), Ok(Vec::new()));
    assert_eq!(call(Request::StreamSync { stream: 5 }), Err(400));
    assert_eq!(call(Request::Free { pointer }), Ok(Vec::new()));
    assert_eq!(call(Request::Free { pointer }), Err(1));
    drop((reader, writer));
    eventually("the process is gone", || worker.processes().is_empty());
}
