//! The program `rocworker-device-plugin`.

use std::process::ExitCode;

fn main() -> ExitCode {
    rocworker_device_plugin::main()
}
