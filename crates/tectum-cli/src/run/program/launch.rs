//! The launch of a program over its arrays, and the sizes of the arrays that it fills.

use tectum::{Error, Result};
use tectum_programs::{BufferIndex, LaunchConfig, Program};

use super::ProgramArgs;
use super::arrays::Arrays;

/// Default number of lanes of a block.
const BLOCK: u32 = 256;
/// Smallest block that is chosen so that no lane is without an element.
const MIN_BLOCK: u32 = 64;

/// One to three sizes with commas between them; those left out are 1.
pub fn extent(text: &str) -> std::result::Result<[u32; 3], String> {
    let sizes: std::result::Result<Vec<u32>, _> = text.split(',').map(|size| size.trim().parse()).collect();
    match sizes.as_deref() {
        Ok([x]) => Ok([*x, 1, 1]),
        Ok([x, y]) => Ok([*x, *y, 1]),
        Ok([x, y, z]) => Ok([*x, *y, *z]),
        _ => Err("one to three whole numbers are needed, as 4 or 4,2,1".to_owned()),
    }
}

/// Determines the launch, and gives every array without contents its shape: one element for each input element if the program
/// uses the lane's own, else as far as constant offsets reach, else one element for each lane. Also returns the count of these elements.
///
/// # Errors
/// Inputs that differ in their count of elements; a count or a size that cannot be determined.
pub fn fit(program: &Program, arrays: &mut Arrays, args: &ProgramArgs) -> Result<(LaunchConfig, Option<u64>)> {
    let known = elements(program, arrays)?;
    let block = args.block.unwrap_or_else(|| [standard_block(program, known.map(|(_, count)| count).filter(|_| args.grid.is_none())), 1, 1]);
    let shape = args.launch(LaunchConfig { block, ..LaunchConfig::default() });
    let launch = match (args.grid, known) {
        (Some(grid), _) => LaunchConfig { grid, ..shape },
        (None, Some((_, count))) => LaunchConfig { grid: [blocks(count, block)?, 1, 1], ..shape },
        (None, None) if !program.uses_lanes() => shape,
        (None, None) => return Err(Error::invalid("no array determines how many lanes the program needs; --size NAME=N of an output does, or --grid X")),
    };
    launch.check()?;
    let count = known.map_or_else(|| launch.lanes(), |(_, count)| count);
    let shape = known.and_then(|(buffer, _)| arrays.shape_of(buffer)).map(<[u64]>::to_vec);
    for index in (0..program.buffers().len() as u32).map(BufferIndex) {
        if arrays.known(index).is_some() {
            continue;
        }
        let width = program.buffer(index).ty.bytes();
        let sizes = match (program.own_element_bytes(index), program.constant_extent(index)) {
            (Some(own), _) if own == width && shape.as_ref().is_some_and(|shape| shape.iter().product::<u64>() == count) => shape.clone().unwrap_or_default(),
            (Some(own), _) => vec![count.saturating_mul(own) / width],
            (None, Some(extent)) => vec![extent.div_ceil(width)],
            (None, None) => vec![count],
        };
        arrays.set_shape(program, index, sizes)?;
    }
    Ok((launch, known.map(|(_, count)| count)))
}

/// Lanes of a block. Where their number does not matter, it divides the number of elements if it can: lanes without an element read zeros, and may fault or
/// loop on them.
fn standard_block(program: &Program, count: Option<u64>) -> u32 {
    match count {
        _ if !program.uses_lanes() => 1,
        Some(count) if !program.uses_blocks() && count > 0 => match u32::try_from(count) {
            Ok(count) if count <= BLOCK => count,
            _ => (MIN_BLOCK..=BLOCK).rev().find(|block| count.is_multiple_of(u64::from(*block))).unwrap_or(BLOCK),
        },
        _ => BLOCK,
    }
}

/// The element count of the known arrays that lanes access by their own number, with the first of these arrays.
fn elements(program: &Program, arrays: &Arrays) -> Result<Option<(BufferIndex, u64)>> {
    let mut known: Option<(BufferIndex, u64)> = None;
    for index in (0..program.buffers().len() as u32).map(BufferIndex) {
        let (Some(bytes), Some(own)) = (arrays.known(index), program.own_element_bytes(index)) else { continue };
        let count = bytes / own;
        match known {
            Some((first, others)) if others != count => {
                let [first, name] = [first, index].map(|index| &program.buffer(index).name);
                return Err(Error::invalid(format!("buffer {first} has {others} elements and buffer {name} {count}; lanes take one of each")));
            }
            Some(_) => {}
            None => known = Some((index, count)),
        }
    }
    Ok(known)
}

fn blocks(count: u64, block: [u32; 3]) -> Result<u32> {
    let lanes = LaunchConfig { block, ..LaunchConfig::default() }.block_lanes();
    let blocks = count.checked_div(lanes).map(|whole| whole + u64::from(!count.is_multiple_of(lanes)));
    let fault = || Error::invalid(format!("{count} elements in blocks of {lanes} lanes: no launch has as many blocks"));
    blocks.and_then(|blocks| u32::try_from(blocks).ok()).ok_or_else(fault)
}
