//! A brain of your own, which swings the built-in pendulum up and balances it:
//! `cargo run -p tectum-control --example brain`.

use tectum::{Device, Result};
use tectum_control::body::pendulum::Pendulum;
use tectum_control::body::{Start, task};
use tectum_control::brain::Stateless;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings};

fn main() -> Result<()> {
    // Proportional-derivative control near the upright pole, the energy of the upright pole
    // elsewhere.
    let swing_up = Stateless::new("swing_up", |observation, action| {
        let (angle_rad, speed_rad_per_s) = (observation[0], observation[1]);
        // Of a pole of 1 kg and 1 m, with 10 m/s², relative to the upright pole at rest.
        let energy_j = speed_rad_per_s.powi(2) / 6.0 + 5.0 * (angle_rad.cos() - 1.0);
        let is_near = angle_rad.abs() < 0.5;
        action[0] = if is_near {
            -15.0 * angle_rad - 3.0 * speed_rad_per_s
        } else {
            -2.0 * (speed_rad_per_s * energy_j).signum()
        };
    });
    let settings = LoopSettings {
        seconds: 10.0,
        ..LoopSettings::default()
    };
    let mut closed_loop = ClosedLoop::new(
        Box::new(Pendulum::new(Start::Hanging)),
        Box::new(swing_up),
        &settings,
        &Device::open("cpu")?,
    )?;
    closed_loop.set_task(task::keep(0, 0.0, 0.17));
    let success = closed_loop
        .simulate()
        .into_result()?
        .metrics
        .success_fraction();
    println!(
        "within 0.17 rad of upright {:.0} % of the time",
        100.0 * success
    );
    assert!(success > 0.5);
    Ok(())
}
