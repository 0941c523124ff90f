//! A dense network learns the exclusive or of two inputs:
//! `cargo run -p tectum-graph --example dense [-- DEVICE]`.

use tectum::{Activation, Device, Result};
use tectum_graph::{AdamW, GraphBuilder, Init, Trainer};

fn main() -> Result<()> {
    let mut g = GraphBuilder::new();
    let (x, target) = (g.input("x", [4, 2])?, g.input("target", [4, 1])?);
    let hidden = g.dense("hidden", x, 8, Activation::Tanh)?;
    let y = g.dense("out", hidden, 1, Activation::None)?;
    let loss = g.mse(y, target)?;
    g.output("loss", loss)?;
    // On a GPU: `-- vulkan:0` or `-- cuda:0`.
    let device = Device::open(std::env::args().nth(1).as_deref().unwrap_or("cpu"))?;
    let mut trainer = Trainer::new(
        &g.finish()?,
        loss,
        AdamW {
            learning_rate: 0.03.into(),
            ..AdamW::default()
        },
        &device,
    )?;
    trainer.initialize(
        1,
        &[("*.weight", Init::XavierUniform), ("*.bias", Init::Zeros)],
    )?;
    trainer.set_input("x", &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])?;
    trainer.set_input("target", &[0.0, 1.0, 1.0, 0.0])?;
    let first = trainer.step()?;
    let last = (1..500).try_fold(first, |_, _| trainer.step())?;
    println!("loss {first:.3} before training, {last:.6} after 500 steps");
    assert!(last < 1e-3);
    Ok(())
}
