use std::time::Instant;
use tectum_models::body::{body, Start};
use tectum_models::brain::{Brain, mppi::{Mppi, MppiParameters}};
use tectum_models::twin::{train, Transitions, TwinLayout, TwinRecipe};
fn main() -> Result<(), tectum::Error> {
    let a: Vec<String> = std::env::args().collect();
    let (name, device_id, seed, seconds) = (a[1].as_str(), a[2].as_str(), a[3].parse::<u64>().unwrap(), a[4].parse::<f64>().unwrap());
    let device = tectum::Device::open(device_id)?;
    let start = if name == "cart_pole" { None } else { Some(Start::Hanging) };
    let mut plant = body(name, start)?;
    let mut parameters = MppiParameters::for_body(name)?;
    if let Some(k) = a.get(5) { parameters.samples = k.parse().unwrap(); }
    let layout = TwinLayout::of(plant.spec(), parameters.previous_action)?;
    let recipe = TwinRecipe::default();
    let t = Instant::now();
    let data = Transitions::simulate(&mut *body(name, start)?, &layout, recipe.transitions, seed);
    println!("data {:?}", t.elapsed());
    let (twin, report) = train(&layout, &data, &recipe, &device, seed, |_, _| {})?;
    println!("{report:?}");
    let t = Instant::now();
    let mut brain = Mppi::new(&twin, &parameters, &device, seed)?;
    println!("compile {:?} launches", t.elapsed());
    plant.reset(seed);
    let mut obs = vec![0.0; layout.channels.len()];
    let mut act = [0.0];
    let ticks = (seconds / plant.spec().dt_s) as usize;
    let (mut up, mut worst, mut total) = (0, 0.0f64, 0.0);
    let mut last_down = 0.0; let mut episodes = 0;
    let mut stats = Default::default();
    for k in 0..ticks {
        plant.observe(&mut obs);
        let t = Instant::now();
        stats = brain.tick(&obs, &mut act)?;
        let dt = t.elapsed().as_secs_f64() * 1e3; worst = worst.max(dt); total += dt;
        let s = plant.step(&act);
        if s.terminated { episodes += 1; plant.reset(seed + episodes); }
        if plant.upright_angle_rad().abs() < 10f64.to_radians() { up += 1 } else { last_down = k as f64 * plant.spec().dt_s }
    }
    println!("upright {:.3} last down {last_down:.2} episodes {episodes} tick mean {:.2} max {:.2} ms {stats:?}", up as f64 / ticks as f64, total / ticks as f64, worst);
    Ok(())
}
