mod chains;
mod fused;
mod maps;
mod meetings;
mod random;

use tectum::{DType, Device, PlanBuilder};

use super::{Recognition, Recognized, Refusal, Setting, Shape};
use crate::{
    Bounds, BufferAccess, BufferIndex, Checked, LaunchConfig, Outcome, Program, ProgramView,
};

/// Element counts of all tests.
const SIZES: [u64; 4] = [1, 3, 1_024, 3_073];

const ONE: LaunchConfig = LaunchConfig {
    grid: [1; 3],
    block: [1; 3],
    shared_bytes: 0,
    max_loop_iterations: LaunchConfig::MAX_LOOP_ITERATIONS,
};

fn checked(text: &str) -> Checked {
    Program::parse(text)
        .and_then(|program| program.check())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The shape of a program; sums may change their order, and buffers of u64 are known.
fn recognized(program: &Checked, launch: &LaunchConfig, buffers: &[Vec<u8>]) -> Recognized {
    try_recognize(program, launch, buffers, true)
        .unwrap_or_else(|error| panic!("{error}\n{}", program.program()))
}

fn try_recognize(
    program: &Checked,
    launch: &LaunchConfig,
    buffers: &[Vec<u8>],
    reassociate: bool,
) -> tectum::Result<Recognized> {
    let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
    let is_known = |(index, _): &(usize, &Vec<u8>)| {
        program.program().buffers()[*index].access == BufferAccess::Read
    };
    let contents: Vec<(BufferIndex, &[u8])> = buffers
        .iter()
        .enumerate()
        .filter(is_known)
        .map(|(index, bytes)| (BufferIndex(index as u32), bytes.as_slice()))
        .collect();
    program.recognize(&Setting {
        launch,
        sizes: &sizes,
        contents: &contents,
        reassociate,
    })
}

/// The reasons why a program is general.
fn reasons(recognized: &Recognized) -> String {
    assert!(
        matches!(recognized.shape(), Shape::General),
        "{} was recognised\n{}",
        recognized.shape(),
        recognized.program().program()
    );
    recognized
        .refusals()
        .iter()
        .map(|(shape, refusal): &(&str, Refusal)| format!("{shape}: {refusal}\n"))
        .collect()
}

/// The instructions of a map.
fn code(recognized: &Recognized) -> Vec<String> {
    let Shape::Map(map) = recognized.shape() else {
        panic!("no map: {}{:?}", recognized.shape(), recognized.refusals())
    };
    let program = map.program().program();
    program
        .instructions()
        .iter()
        .map(|instruction| program.instruction_text(instruction))
        .collect()
}

/// The buffers after a run of the reference.
fn reference(program: &Checked, launch: &LaunchConfig, buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut after = buffers.to_vec();
    let outcome = program
        .evaluate(launch, &mut after, u64::MAX)
        .expect("the launch fits");
    assert_eq!(outcome, Outcome::Finished, "{}", program.program());
    after
}

/// The buffers after a run of the recognised form, recorded in a plan on the CPU.
fn planned(
    program: &Checked,
    launch: &LaunchConfig,
    buffers: &[Vec<u8>],
    reassociate: bool,
) -> (Shape, Vec<Vec<u8>>) {
    let mut plan = PlanBuilder::new("recognized");
    let declared = program.program().buffers();
    let words = |bytes: &[u8]| -> Vec<u32> {
        bytes
            .chunks(4)
            .map(|chunk| {
                chunk
                    .iter()
                    .rev()
                    .fold(0, |word, byte| word << 8 | u32::from(*byte))
            })
            .collect()
    };
    let view = |(buffer, bytes): (&crate::BufferDeclaration, &Vec<u8>)| {
        let words = words(bytes);
        let view = if buffer.access == BufferAccess::Read {
            plan.constant(&buffer.name, &words)
        } else {
            plan.state(&buffer.name, DType::U32, words.len())
        };
        ProgramView {
            view,
            bytes: bytes.len() as u64,
        }
    };
    let views: Vec<ProgramView> = declared.iter().zip(buffers).map(view).collect();
    let how = Recognition {
        reassociate,
        bounds: Bounds::Checked,
    };
    let launched = program
        .record_recognized(&mut plan, launch, &views, how)
        .unwrap_or_else(|error| panic!("{error}\n{}", program.program()));
    let mut run = plan
        .finish()
        .and_then(|plan| plan.compile(&Device::open("cpu")?))
        .unwrap_or_else(|error| panic!("{error}"));
    let is_written =
        |index: usize| declared[index].access != BufferAccess::Read && !buffers[index].is_empty();
    for (index, bytes) in buffers
        .iter()
        .enumerate()
        .filter(|(index, _)| is_written(*index))
    {
        run.write_state(views[index].view, &words(bytes))
            .unwrap_or_else(|error| panic!("{error}"));
    }
    run.run().unwrap_or_else(|error| panic!("{error}"));
    launched
        .check(&run)
        .unwrap_or_else(|error| panic!("{error}"));
    let after = |(index, bytes): (usize, &Vec<u8>)| match is_written(index) {
        true => bytemuck::cast_slice::<u32, u8>(
            &run.read_state::<u32>(views[index].view)
                .unwrap_or_else(|error| panic!("{error}")),
        )[..bytes.len()]
            .to_vec(),
        false => bytes.clone(),
    };
    let after = buffers.iter().enumerate().map(after).collect();
    (launched.recognized().shape().clone(), after)
}

fn f32s(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn u64s(values: &[u64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// Numbers of both signs, none equal to its neighbour.
fn values(n: u64, scale: f32) -> Vec<u8> {
    f32s((0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) * scale + 0.25))
}

fn zeros(n: u64) -> Vec<u8> {
    vec![0; 4 * n as usize]
}
