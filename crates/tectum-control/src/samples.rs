//! The samples of this crate: a recording, and trained policies.

use tectum::Sample;

/// A recording of the simulated rig, which `examples/record_rig.rs` makes, and policies for
/// CartPole-v1 and Hopper-v5, which `models/policies.py` and `models/hopper.py` train.
///
/// # Example
/// ```
/// use tectum_control::{SAMPLES, rig_csv::RigRecording};
/// assert_eq!(RigRecording::parse(SAMPLES[0].files[0].1)?.len(), 4200);
/// # Ok::<(), tectum::Error>(())
/// ```
pub static SAMPLES: [Sample; 4] = [
    Sample {
        name: "sample-recording",
        about: "168 s of the simulated rig, swung up, balanced and disturbed, for train rig and train twin",
        files: &[(
            "sample-recording.csv",
            include_bytes!("../samples/sample-recording.csv"),
        )],
    },
    Sample {
        name: "cart-pole-policy",
        about: "a policy trained by Stable-Baselines3 on CartPole-v1, with its contract, for run, inspect and check",
        files: &[
            ("cart_pole.onnx", include_bytes!("../models/cart_pole.onnx")),
            ("cart_pole.toml", include_bytes!("../models/cart_pole.toml")),
        ],
    },
    Sample {
        name: "recurrent-policy",
        about: "a recurrent policy that balances CartPole-v1 without seeing velocities, with its contract",
        files: &[
            (
                "cart_pole_recurrent.onnx",
                include_bytes!("../models/cart_pole_recurrent.onnx"),
            ),
            (
                "cart_pole_recurrent.toml",
                include_bytes!("../models/cart_pole_recurrent.toml"),
            ),
        ],
    },
    Sample {
        name: "hopper-policy",
        about: "a policy trained by Stable-Baselines3 on Hopper-v5, with its contract and the scenario of that environment",
        files: &[
            ("hopper.onnx", include_bytes!("../models/hopper.onnx")),
            ("hopper.toml", include_bytes!("../models/hopper.toml")),
            ("hopper_v5.toml", include_bytes!("../models/hopper_v5.toml")),
        ],
    },
];
