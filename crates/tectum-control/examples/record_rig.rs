//! Records the simulated rig while it is swung up, balanced and disturbed:
//! `cargo run -p tectum-control --example record_rig -- FILE.csv`. The sample recording of the
//! crate is made so; a recording of a real rig has the same columns.

use std::fmt::Write as _;
use std::path::PathBuf;

use tectum::{Result, file};
use tectum_control::body::rig::{Rig, RigParameters};
use tectum_control::body::{Body, Start, body};
use tectum_control::brain::lqr::Lqr;

/// Rows of the recording, 40 ms each.
const ROWS: usize = 4200;
/// Rows of a phase of balancing with small kicks, which a phase of large ones follows.
const PHASE: usize = 300;

fn main() -> Result<()> {
    let path = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "recording.csv".to_owned()),
    );
    file::write(&path, recording()?.as_bytes())?;
    println!("{}: {ROWS} rows", path.display());
    Ok(())
}

/// The text of the recording: the reading of each period and the command that follows it.
pub fn recording() -> Result<String> {
    let mut rig = Rig::new(RigParameters::default(), Start::Hanging)?;
    let mut regulator = Lqr::new(body("rig", None)?)?;
    let mut text = "la_position,pend_velocity,pend_position,cmd_volts,elapsed\n".to_owned();
    let (mut seen, mut command) = ([0.0f32; 4], [0.0f32]);
    let (mut word, mut kick) = (1u64, 0.0);
    for row in 0..ROWS {
        rig.observe(&mut seen);
        // To the resolution of a sensor; the rig gets the rounded command too.
        let [position_in, velocity, angle_deg] = [
            rounded(seen[0], 1e3),
            rounded(seen[2], 10.0),
            rounded(seen[3], 100.0),
        ];
        let _ = writeln!(
            text,
            "{position_in},{velocity},{angle_deg},{},40",
            command[0]
        );
        if row % 3 == 0 {
            // Knuth's linear congruential generator.
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            kick = 2.0 * ((word >> 40) as f32 / (1u64 << 24) as f32) - 1.0;
        }
        regulator.tick(&seen, &mut command);
        let volts = if row % 500 < PHASE {
            command[0] + 0.7 * kick
        } else {
            3.0 * kick + 0.8 * seen[0]
        };
        command[0] = rounded(volts.clamp(-5.0, 5.0), 100.0);
        regulator.follow(&seen, &command);
        rig.step(&command);
    }
    Ok(text)
}

fn rounded(number: f32, steps_per_unit: f32) -> f32 {
    // Adding 0 turns -0 into 0.
    (number * steps_per_unit).round() / steps_per_unit + 0.0
}
