//! The daemon's judgement of Instincts. **Every judgement here is invented.**

use serde_json::json;

use crate::Machine;
use crate::readings::Trouble;
use crate::sample::Instinct;

/// The time of the judgement of [`crate::Machine::instinct_in_trouble`], in seconds since 1970.
pub const JUDGED_AT: u64 = 1_764_000_000;

impl Machine {
    /// [`Machine::instinct_with_readings`] in trouble. Card 0 has hung, with RAS errors, bad pages, an XGMI link that is down
    /// and clocks that were limited. Card 1, if there is one, has metrics of version 1.3 by which power and temperature
    /// limit its clocks now. A daemon said so at [`JUDGED_AT`].
    #[must_use]
    pub fn instinct_in_trouble(cards: u8, partitions: u8) -> Self {
        let machine = Self::with_readings(cards, partitions, |number| match number {
            0 => Some(Trouble::Broken),
            1 => Some(Trouble::Throttled),
            _ => None,
        });
        machine.put("/run/rocworker/health.json", health(cards, true, JUDGED_AT))
    }
}

/// The text of /run/rocworker/health.json for the cards of [`crate::Machine::instinct`]. In trouble, card 0 hangs and is in
/// quarantine, card 1 is degraded, and of card 2 nothing is known.
#[must_use]
pub fn health(cards: u8, is_in_trouble: bool, written_at: u64) -> String {
    let deduction = |rule: &str, points: u8, evidence: &str| json!({"rule": rule, "points": points, "reason": "It is invented.", "evidence": evidence});
    let of_card = |number: u8| {
        let mut gpu = json!({
            "pci": Instinct::of_server(number, 0, 1).address,
            "state": "healthy", "score": 100, "hang": false,
            "deductions": [], "unknown": [], "quarantine": null, "leftover": null,
        });
        match number {
            0 if is_in_trouble => {
                gpu["state"] = json!("unhealthy");
                gpu["score"] = json!(10);
                gpu["hang"] = json!(true);
                gpu["deductions"] = json!([deduction("hang", 90, "amdgpu: ring gfx timeout")]);
                gpu["quarantine"] = json!({
                    "since": written_at - 60, "unhealthy_at": written_at, "reason": "It hangs.", "rules": ["hang-now"],
                });
            }
            1 if is_in_trouble => {
                gpu["state"] = json!("degraded");
                gpu["score"] = json!(85);
                gpu["deductions"] = json!([deduction("thermal", 15, "rocm_gpu_throttle_status 1")]);
            }
            2 if is_in_trouble => {
                gpu["state"] = json!("unknown");
                gpu["score"] = json!(null);
                gpu["hang"] = json!(null);
                gpu["unknown"] = json!(["Its readings cannot be read."]);
            }
            _ => {}
        }
        gpu
    };
    let gpus: Vec<_> = (0..cards).map(of_card).collect();
    json!({"schema_version": 1, "written_at": written_at, "gpus": gpus, "unknown": []}).to_string()
}
