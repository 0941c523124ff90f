//! A lane-level program over arrays: `cargo run -p tectum-programs --example saxpy [-- DEVICE]`.

use tectum::{Device, Result};
use tectum_programs::{BufferIndex, LaunchConfig, Program};

const SAXPY: &str = "
    buffer x: f32 read
    buffer y: f32 read_write
    mov_imm.f32 r0, 2.0
    ldg.f32 r1, [x]
    ldg.f32 r2, [y]
    fma.f32 r2, r0, r1, r2
    stg.f32 [y], r2";

fn main() -> Result<()> {
    let (x, y) = (BufferIndex(0), BufferIndex(1));
    let n = 8u32;
    let plan = Program::parse(SAXPY)?
        .check()?
        .bound(&LaunchConfig::linear(n, 256), &[4 * u64::from(n); 2])?
        .plan()?;
    // On a GPU: `-- vulkan:0` or `-- cuda:0`.
    let mut run = plan.compile(&Device::open(
        std::env::args().nth(1).as_deref().unwrap_or("cpu"),
    )?)?;
    let bytes = |value: fn(u32) -> f32| {
        (0..n)
            .flat_map(|i| value(i).to_le_bytes())
            .collect::<Vec<u8>>()
    };
    run.input(x).copy_from_slice(&bytes(|i| i as f32));
    run.input(y).copy_from_slice(&bytes(|_| 0.5));
    run.run()?;
    let result: Vec<f32> = run
        .output(y)
        .as_chunks()
        .0
        .iter()
        .map(|bytes| f32::from_le_bytes(*bytes))
        .collect();
    println!("2 · x + 0.5 = {result:?}");
    assert_eq!(result[7], 14.5);
    Ok(())
}
