//! Trains a small transformer on a sentence or two and prints the loss.
//!
//! ```sh
//! cargo run --release -p tectum-graph --example train_transformer -- cpu
//! ```

mod model;

use tectum::{Device, Result};

fn main() -> Result<()> {
    let id = std::env::args().nth(1).unwrap_or_else(|| "cpu".to_owned());
    let mut model = model::Model::new(&Device::open(&id)?)?;
    for step in 0..500 {
        let loss = model.step()?;
        if step % 50 == 0 || step == 499 {
            println!("step {step}: loss {loss:.3}");
        }
    }
    Ok(())
}
