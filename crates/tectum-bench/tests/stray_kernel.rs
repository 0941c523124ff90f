//! A user's kernel that indexes beyond its bindings: its effects on a device.

use tectum::{ALIGNED_ELEMENTS, DType, Device, Kernel, PlanBuilder, Result};

/// Elements of each binding; the same number follows it in the same buffer.
const LEN: usize = ALIGNED_ELEMENTS;
/// The value after both bindings.
const FOREIGN: u32 = 9_000_009;

/// Runs it, and returns errors: it may write and read any element of its bindings, and none after
/// them.
pub fn stray(device: &Device) -> Result<Option<String>> {
    let kernel = Kernel::define("strays")
        .read("x", DType::U32)
        .write("y", DType::U32)
        .param("far", DType::U32)
        .body(
            "@compute @workgroup_size(64)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {
             y[id.x + params.far] = x[id.x + params.far];
             y[id.x] = x[params.far + 3u * id.x];
         }",
        );
    // The native twin is safe code, and panics at such an index.
    let kernel = kernel.native(|_| {})?;
    let mut plan = PlanBuilder::new("strays");
    let [x, y] = ["x", "y"].map(|name| plan.state(name, DType::U32, 2 * LEN));
    plan.launch_dynamic(&kernel, &[x.part(0..LEN), y.part(0..LEN)], &[LEN as u32], 1)?;
    let mut run = plan.finish()?.compile(device)?;
    let behind = |own: u32| {
        (0..2 * LEN)
            .map(|i| if i < LEN { own } else { FOREIGN })
            .collect::<Vec<u32>>()
    };
    run.write_state(x, &behind(1))?;
    run.write_state(y, &behind(2))?;
    run.run()?;
    let found = run.read_state::<u32>(y)?;
    let (own, foreign) = found.split_at(LEN);
    let is_wrong = foreign.iter().any(|word| *word != FOREIGN)
        || own.iter().any(|word| !(0..=2).contains(word));
    Ok(is_wrong.then(|| {
        format!(
            "{}: its own words {own:?}, those behind them {foreign:?}",
            device.info().id
        )
    }))
}
