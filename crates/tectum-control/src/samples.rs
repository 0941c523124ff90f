//! The samples of this crate: recordings, and trained policies.

use tectum::Sample;

/// A recording of the simulated rig, which `examples/record_rig.rs` makes, one of CartPole-v1 as a
/// robot of ROS 2, which `samples/ros_recording.py` makes, and policies for CartPole-v1 and
/// Hopper-v5, which `models/policies.py` and `models/hopper.py` train; `models/deployments.py`
/// makes the two that are untrained.
///
/// # Example
/// ```
/// use tectum_control::{SAMPLES, rig_csv::RigRecording};
/// assert_eq!(RigRecording::parse(SAMPLES[0].files[0].1)?.len(), 4200);
/// # Ok::<(), tectum::Error>(())
/// ```
pub static SAMPLES: [Sample; 7] = [
    Sample {
        name: "sample-recording",
        about: "168 s of the simulated rig, swung up, balanced and disturbed, for train rig and train twin",
        files: &[(
            "sample-recording.csv",
            include_bytes!("../samples/sample-recording.csv"),
        )],
    },
    Sample {
        name: "ros-recording",
        about: "4 s of CartPole-v1 under that policy as a robot of ROS 2 records it, for inspect and replay",
        files: &[("cart.mcap", include_bytes!("../samples/cart.mcap"))],
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
        name: "locomotion-policy",
        about: "an untrained policy in the format of rsl_rl's export, with deploy.yaml and a quadruped for MuJoCo, for init --from",
        files: &[
            (
                "policy.onnx",
                include_bytes!("../models/locomotion/policy.onnx"),
            ),
            (
                "deploy.yaml",
                include_bytes!("../models/locomotion/deploy.yaml"),
            ),
            (
                "scene.xml",
                include_bytes!("../models/locomotion/scene.xml"),
            ),
        ],
    },
    Sample {
        name: "act-policy",
        about: "an untrained policy that gives chunks of ten actions, with config.json and statistics in LeRobot's format",
        files: &[
            ("policy.onnx", include_bytes!("../models/act/policy.onnx")),
            ("config.json", include_bytes!("../models/act/config.json")),
            (
                "policy_preprocessor.json",
                include_bytes!("../models/act/policy_preprocessor.json"),
            ),
            (
                "policy_postprocessor.json",
                include_bytes!("../models/act/policy_postprocessor.json"),
            ),
            (
                "policy_preprocessor_step_0_normalizer_processor.safetensors",
                include_bytes!(
                    "../models/act/policy_preprocessor_step_0_normalizer_processor.safetensors"
                ),
            ),
            (
                "policy_postprocessor_step_0_unnormalizer_processor.safetensors",
                include_bytes!(
                    "../models/act/policy_postprocessor_step_0_unnormalizer_processor.safetensors"
                ),
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
