//! `partition devices`, `env` and `fit`.

use std::fs;

use layout::{Machine, Nodes};
use serde_json::json;
use support::detect::scratch;

use super::machine::{answer, refused, run, text};

#[test]
fn one_device_is_named_by_its_index_and_its_number_on_the_card() {
    let root = scratch();
    Machine::instinct(2, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let devices = answer(root.path(), "partition devices");
    let device = &devices["devices"][11];
    let expected = json!({"index": 11, "pci": "0000:15:00.0", "partition": 3, "render": "renderD147", "xcds": 1,
                          "memory_bytes": 24_u64 << 30, "memory_computed": false});
    assert_eq!(*device, expected);
    assert_eq!(text(root.path(), "partition env 11"), "ROCR_VISIBLE_DEVICES=11\nAIM_PARTITION_ID=3\n");
    let (code, stderr) = refused(root.path(), "partition env 16");
    assert_eq!(code, Some(2));
    assert!(stderr.contains("16 is no device of this machine: it has 0-15"), "{stderr}");
}

#[test]
fn a_model_that_fits_comes_with_the_device_and_the_arguments_of_vllm_in_a_container() {
    let root = scratch();
    Machine::instinct(1, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let said = answer(root.path(), "partition fit org/llama --partition 3 --parameters 8B --context 8192");
    let expected = json!({
        "device": "amd.com/gpu=3",
        "arguments": ["serve", "org/llama", "--gpu-memory-utilization", "0.90", "--max-model-len", "8192",
                      "--dtype", "float16"],
    });
    assert_eq!(said["vllm"], expected);
    let said = text(root.path(), "partition fit org/llama --partition 3 --parameters 8B");
    assert!(said.contains("in a container with --device amd.com/gpu=3: vllm serve org/llama"), "{said}");
}

#[test]
fn a_model_that_does_not_fit_ends_with_3_and_the_figures() {
    let root = scratch();
    Machine::instinct(1, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    for (line, code, expected) in [
        (
            "partition fit llama --partition 0 --parameters 8B",
            0,
            "llama fits into GPU 0: 14.9 GiB of weights",
        ),
        (
            "partition fit big --partition 0 --parameters 13B",
            3,
            "big does not fit into GPU 0: 24.2 GiB of weights",
        ),
        ("partition fit big --partition 0 --parameters 13B --precision fp8", 0, "big fits into GPU 0"),
    ] {
        let output = run(root.path(), line);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
    let config = root.path().join("config.json");
    fs::write(&config, "{\"hidden_size\": 1}").unwrap();
    for (line, code, expected) in [
        (
            format!("partition fit {} --partition 0", config.display()),
            2,
            "config.json: no config.json of a language model",
        ),
        ("partition fit nowhere --partition 0".to_owned(), 1, "takes --parameters"),
        ("partition fit x --partition 0 --parameters many".to_owned(), 2, "is no number of parameters"),
        (
            "partition fit x --partition 8 --parameters 8B".to_owned(),
            2,
            "8 is no device of this machine: it has 0-7",
        ),
    ] {
        let (found, stderr) = refused(root.path(), &line);
        assert_eq!(found, Some(code), "{line}: {stderr}");
        assert!(stderr.contains(expected), "{line}: {stderr}");
    }
}
