//! Cases that fail for a fault of a driver or of naga's output for it, not of the table. A listed
//! case that passes is a failure too.

use crate::report::{Outcome, Run};

/// A case that is known to fail on a device.
struct Fault {
    /// Part of the device's name.
    device: &'static str,
    case: &'static str,
    reason: &'static str,
    /// Whether every machine has it; llvmpipe generates code for the host processor.
    everywhere: bool,
}

/// naga writes the instruction for the target's sign where SPIR-V wants the one for the source's.
const SIGN_OF_WIDENING: &str =
    "naga's SPIR-V widens a 32-bit integer by the sign of the result's type";

// Two faults of llvmpipe 22.3: observed on Zen 3 (AVX2), not on Sapphire Rapids (AVX-512).
const FAULTS: &[Fault] = &[
    Fault {
        device: "vulkan:",
        case: "conversion/i32 to u64",
        reason: SIGN_OF_WIDENING,
        everywhere: true,
    },
    Fault {
        device: "vulkan:",
        case: "conversion/u32 to i64",
        reason: SIGN_OF_WIDENING,
        everywhere: true,
    },
    Fault {
        device: "vulkan:",
        case: "conversion/vec2<u32> to vec2<i64>",
        reason: SIGN_OF_WIDENING,
        everywhere: true,
    },
    Fault {
        device: "llvmpipe",
        case: "math/round/f64",
        reason: "llvmpipe rounds 1.5 to 1 in double precision",
        everywhere: false,
    },
    Fault {
        device: "llvmpipe",
        case: "math/trunc/f64",
        reason: "llvmpipe leaves 4503599627370495.5 as it is",
        everywhere: false,
    },
];

/// Turns failures that are known into known ones, and known faults of every machine that did not
/// occur into failures.
pub fn apply(run: &mut Run) {
    for (name, outcome) in &mut run.outcomes {
        let Some(fault) = FAULTS
            .iter()
            .find(|fault| run.device.contains(fault.device) && fault.case == name)
        else {
            continue;
        };
        *outcome = match &*outcome {
            Outcome::Failed(_) => Outcome::Known(fault.reason),
            Outcome::Passed if fault.everywhere => Outcome::Failed(format!(
                "passed, though listed as a known fault: {}",
                fault.reason
            )),
            other => other.clone(),
        };
    }
}
