//! The example `custom_op` on every device.

#[path = "../examples/custom_op.rs"]
mod custom_op;

use tectum::Device;

/// The rows times w are 5 and −21: only the first counts, with a slope of 10.
#[test]
fn the_example_has_the_loss_and_gradient_computed_by_hand() {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: an operation of a user");
            continue;
        };
        assert_eq!(
            custom_op::loss_and_gradient(&device).expect("runs"),
            (25.0, vec![10.0, 20.0, 30.0]),
            "{id}"
        );
    }
}
