//! Pendulum-v1 from Gymnasium's own starts compared with the optimum of a dynamic program.

use tectum::Device;
use tectum_control::body::body;
use tectum_control::brain::Brain;
use tectum_control::brain::mppi::{Model, Mppi, MppiParameters};
use tectum_control::twin::TwinLayout;

/// Mean return of the optimum over Gymnasium's starts of seeds 0 to 99, by a dynamic program on 720
/// × 641 states and 17 torques; its policy is what returns that. One on 1440 × 1281 states returns
/// −132.66.
const OPTIMUM: f64 = -132.83;
/// Steps of an episode.
const STEPS: usize = 200;

/// Gymnasium's starts of seeds 0 to 99; `tests/data/pendulum_starts.py` wrote them.
fn starts() -> Vec<[f64; 2]> {
    let mut reader = csv::Reader::from_reader(&include_bytes!("data/pendulum_starts.csv")[..]);
    let rows = reader
        .deserialize::<(u64, f64, f64)>()
        .map(|row| row.expect("as it was written"));
    rows.map(|(_, angle, speed)| [angle, speed]).collect()
}

/// The returns of episodes from the first `count` starts.
fn returns(parameters: &MppiParameters, count: usize) -> Vec<f64> {
    let device = Device::open("cpu").expect("always there");
    let mut plant = body("pendulum", None).expect("known");
    let layout = TwinLayout::of(plant.spec(), false).expect("one action");
    let mut returns = Vec::new();
    let starts = starts();
    let (mut seen, mut action) = ([0.0f32; 2], [0.0f32; 1]);
    for (seed, start) in starts.iter().take(count).enumerate() {
        let model = Model::Plant {
            body: "pendulum".into(),
            layout: layout.clone(),
        };
        let mut brain = Mppi::new(model, parameters, &device, seed as u64).expect("it compiles");
        plant.set_state(start).expect("two numbers");
        let mut total = 0.0;
        for _ in 0..STEPS {
            plant.observe(&mut seen);
            brain.tick(&seen, &mut action).expect("it runs");
            total += plant.step(&action).reward;
        }
        returns.push(total);
    }
    returns
}

#[test]
fn mppi_on_the_plant_itself_comes_within_2_of_the_optimum() {
    let parameters = MppiParameters::for_plant("pendulum").expect("known");
    let returns = returns(&parameters, 100);
    let found = returns.iter().sum::<f64>() / returns.len() as f64;
    eprintln!(
        "pendulum: mean return {found:.2} over {} starts, regret {:.2}",
        returns.len(),
        OPTIMUM - found
    );
    assert!(
        OPTIMUM - found <= 0.5,
        "mean return {found}, regret {}",
        OPTIMUM - found
    );
    // It cannot be better than the optimum by more than the grid error of the program.
    assert!(
        OPTIMUM - found >= -0.6,
        "mean return {found}, regret {}",
        OPTIMUM - found
    );
}
