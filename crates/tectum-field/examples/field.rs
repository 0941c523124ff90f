//! A field that maps two sensors to a motor:
//! `cargo run -p tectum-field --example field [-- DEVICE]`.

use tectum::{Boundary, Device, Result};
use tectum_field::{Options, Shape, Simulation, Storage};

fn main() -> Result<()> {
    let shape = Shape::new([16, 16, 16], 32)?;
    let options = Options {
        sensors: 2,
        motors: 1,
        boundary: Boundary::Periodic,
        seed: 1,
        patterns: 16,
        storage: Storage::F32,
    };
    // On a GPU: `-- vulkan:0` or `-- cuda:0`.
    let device = Device::open(std::env::args().nth(1).as_deref().unwrap_or("cpu"))?;
    let mut field = Simulation::new(shape, options, &device)?;
    for cycle in 0..20 {
        let phase = cycle as f32 * 0.3;
        let report = field.tick(&[phase.sin(), phase.cos()], 0.0)?;
        if cycle % 5 == 0 {
            println!(
                "cycle {cycle}: motor {:+.3}, novelty {:.2}, {} patterns stored",
                report.motors[0], report.novelty, report.recall.kept
            );
        }
        assert!(report.motors[0].abs() <= 1.0);
    }
    Ok(())
}
