//! Runs that a task of tokio awaits while another task continues:
//! `cargo run -p tectum --example tokio [-- DEVICE]`.

use tectum::{DType, Device, Error, PlanBuilder, Result, Stream};

async fn iterated(device: Device) -> Result<f32> {
    let mut plan = PlanBuilder::new("iterated_tanh");
    let (x, y) = (
        plan.input("x", DType::F32, 1),
        plan.output("y", DType::F32, 1),
    );
    plan.unary("tanh", x, y)?;
    let (stream, mut run) = (Stream::new()?, plan.finish()?.compile(&device)?);
    run.input::<f32>(x)[0] = 1.0;
    for _ in 0..10 {
        let (ended, stats) = stream.submit(run).await;
        (run, _) = (ended, stats?);
        let next = run.output::<f32>(y)[0];
        run.input::<f32>(x)[0] = next;
    }
    Ok(run.output::<f32>(y)[0])
}

fn main() -> Result<()> {
    // On a GPU: `-- vulkan:0` or `-- cuda:0`.
    let device = Device::open(std::env::args().nth(1).as_deref().unwrap_or("cpu"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|source| Error::io("tokio", source))?;
    let (value, other) =
        runtime.block_on(async { tokio::join!(iterated(device), async { "another task" }) });
    let value = value?;
    println!("tanh ten times: {value:.4}, next to {other}");
    assert!((value - 0.3563).abs() < 1e-3);
    Ok(())
}
