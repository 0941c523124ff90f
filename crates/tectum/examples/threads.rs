//! A plan compiled once in each of several threads, which run concurrently:
//! `cargo run -p tectum --example threads [-- DEVICE]`.

use tectum::{DType, Device, PlanBuilder, Result};

fn main() -> Result<()> {
    // On a GPU: `-- vulkan:0` or `-- cuda:0`.
    let device = Device::open(std::env::args().nth(1).as_deref().unwrap_or("cpu"))?;
    let work = |worker: u32| -> Result<f32> {
        let mut plan = PlanBuilder::new("sum_of_tanh");
        let (x, y, sum) = (
            plan.input("x", DType::F32, 1000),
            plan.temp(DType::F32, 1000),
            plan.output("sum", DType::F32, 1),
        );
        plan.unary("tanh", x, y)?;
        plan.sum(y, sum, 1, 1000)?;
        let mut run = plan.finish()?.compile(&device)?;
        run.input::<f32>(x).fill(worker as f32);
        run.run()?;
        Ok(run.output::<f32>(sum)[0])
    };
    let sums = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|worker| scope.spawn(move || work(worker)))
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .collect::<Result<Vec<f32>>>()
    })?;
    for (worker, sum) in sums.iter().enumerate() {
        println!("thread {worker}: 1000 · tanh({worker}) = {sum:.2}");
        assert!((f64::from(*sum) - 1000.0 * (worker as f64).tanh()).abs() < 0.01);
    }
    Ok(())
}
