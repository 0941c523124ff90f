//! The transformer of the example `train_transformer` has the losses of PyTorch, from the same
//! weights and batches.

#[path = "../examples/train_transformer/model.rs"]
mod model;

use tectum::Device;

/// Greatest difference of a loss of 2 to 4 in 50 steps of f32.
const TOLERANCE: f32 = 1e-4;

#[test]
fn losses_are_those_of_pytorch() {
    let losses: Vec<f32> = include_str!("train_transformer.txt")
        .lines()
        .filter_map(|line| line.parse().ok())
        .collect();
    assert_eq!(losses.len(), 50);
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a trained transformer");
            continue;
        };
        let mut model = model::Model::new(&device).expect("compiles");
        let mut greatest = 0.0f32;
        for (step, &wanted) in losses.iter().enumerate() {
            let loss = model.step().expect("runs");
            assert!(
                (loss - wanted).abs() <= TOLERANCE,
                "{id}, step {step}: {loss}, not {wanted}"
            );
            greatest = greatest.max((loss - wanted).abs());
        }
        eprintln!("{id}: greatest difference {greatest:e}");
        let later: f32 = (0..50).map(|_| model.step().expect("runs")).sum::<f32>() / 50.0;
        assert!(later < 0.6 * losses[0], "{id}: {} → {later}", losses[0]);
    }
}
