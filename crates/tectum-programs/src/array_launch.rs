//! The launch of a program over arrays, and the shapes of the arrays that it fills.

use tectum::{Error, Result};

use super::{BufferIndex, LaunchConfig, Program};

/// Default number of lanes of a block.
const BLOCK: u32 = 256;
/// Smallest block that is chosen so that no lane is without an element.
const MIN_BLOCK: u32 = 64;

/// What a caller decides about a launch; the arrays determine the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// Blocks in x, y, z. Default: as many as the elements need.
    pub grid: Option<[u32; 3]>,
    /// Lanes of a block in x, y, z. Default: 256, or 64 to 256 that divide the number of elements
    /// where the size of blocks does not matter; 1 where lanes do not matter.
    pub block: Option<[u32; 3]>,
    /// Bytes of a block's shared memory. Default: those that the program declares.
    pub shared_bytes: Option<u32>,
    /// How often a lane may jump back. Default: [`LaunchConfig::MAX_LOOP_ITERATIONS`].
    pub max_loop_iterations: Option<u32>,
}

impl LaunchRequest {
    /// The launch; `standard` gives what is not requested.
    pub fn or(&self, standard: LaunchConfig) -> LaunchConfig {
        LaunchConfig {
            grid: self.grid.unwrap_or(standard.grid),
            block: self.block.unwrap_or(standard.block),
            shared_bytes: self.shared_bytes.unwrap_or(standard.shared_bytes),
            max_loop_iterations: self
                .max_loop_iterations
                .unwrap_or(standard.max_loop_iterations),
        }
    }
}

/// A launch over arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayLaunch {
    /// The launch.
    pub launch: LaunchConfig,
    /// The shape of each buffer, in elements of its type.
    pub shapes: Vec<Vec<u64>>,
    /// Elements of the arrays that lanes access by their own number; none if none of a known shape
    /// is accessed so.
    pub elements: Option<u64>,
}

impl Program {
    /// Determines the launch over arrays of which some have a shape, and the shapes of the others:
    /// one element for each element of the known arrays if the program uses the lane's own, else as
    /// far as constant offsets reach, else one element for each lane.
    ///
    /// # Errors
    /// `Invalid`: known arrays that differ in their count of elements; a count that nothing
    /// determines; a launch that is too large.
    ///
    /// # Panics
    /// Unless there is an entry for each buffer.
    ///
    /// # Example
    /// ```
    /// use tectum_programs::{LaunchRequest, Program};
    /// let program = Program::parse("buffer x: i32 read\nbuffer y: i32 write\nldg.i32 r0, [x]\nstg.i32 [y], r0")?;
    /// let fitted = program.launch_over(&[Some(vec![2, 3]), None], &LaunchRequest::default())?;
    /// assert_eq!((fitted.launch.block, fitted.shapes[1].as_slice()), ([6, 1, 1], &[2, 3][..]));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn launch_over(
        &self,
        known: &[Option<Vec<u64>>],
        request: &LaunchRequest,
    ) -> Result<ArrayLaunch> {
        assert_eq!(
            known.len(),
            self.buffers().len(),
            "one entry for each buffer"
        );
        let first = self.known_elements(known)?;
        let elements = first.map(|(_, count)| count);
        let block = request.block.unwrap_or_else(|| {
            [
                self.standard_block(elements.filter(|_| request.grid.is_none())),
                1,
                1,
            ]
        });
        let shape = request.or(LaunchConfig {
            block,
            ..LaunchConfig::default()
        });
        let launch = match (request.grid, elements) {
            (Some(_), _) => shape,
            (None, Some(count)) => LaunchConfig {
                grid: [blocks(count, block)?, 1, 1],
                ..shape
            },
            (None, None) if !self.uses_lanes() => shape,
            (None, None) => {
                return Err(Error::invalid(
                    "no array determines how many lanes the program needs; the size of an output does, or the grid",
                ));
            }
        };
        launch.check()?;
        let count = elements.unwrap_or_else(|| launch.lanes());
        let alike = first.and_then(|(index, _)| known[index].as_ref());
        let shapes = known
            .iter()
            .enumerate()
            .map(|(index, shape)| {
                shape
                    .clone()
                    .unwrap_or_else(|| self.standard_shape(index, count, alike))
            })
            .collect();
        Ok(ArrayLaunch {
            launch,
            shapes,
            elements,
        })
    }

    fn standard_shape(&self, index: usize, count: u64, alike: Option<&Vec<u64>>) -> Vec<u64> {
        let index = BufferIndex(index as u32);
        let width = self.buffer(index).ty.bytes();
        match (
            self.own_element_bytes(index),
            self.constant_extent(index),
            alike,
        ) {
            (Some(own), _, Some(shape))
                if own == width && shape.iter().product::<u64>() == count =>
            {
                shape.clone()
            }
            (Some(own), ..) => vec![count.saturating_mul(own) / width],
            (None, Some(extent), _) => vec![extent.div_ceil(width)],
            (None, None, _) => vec![count],
        }
    }

    /// Lanes of a block. Where their number does not matter, it divides the number of elements if
    /// it can: lanes without an element read zeros, and may fault or loop on them.
    fn standard_block(&self, count: Option<u64>) -> u32 {
        match count {
            _ if !self.uses_lanes() => 1,
            Some(count) if !self.uses_blocks() && count > 0 => match u32::try_from(count) {
                Ok(count) if count <= BLOCK => count,
                _ => (MIN_BLOCK..=BLOCK)
                    .rev()
                    .find(|block| count.is_multiple_of(u64::from(*block)))
                    .unwrap_or(BLOCK),
            },
            _ => BLOCK,
        }
    }

    /// The first known array that lanes access by their own number, and its count of elements,
    /// which others must have too.
    fn known_elements(&self, known: &[Option<Vec<u64>>]) -> Result<Option<(usize, u64)>> {
        let mut first: Option<(usize, u64)> = None;
        for (index, shape) in known.iter().enumerate() {
            let buffer = BufferIndex(index as u32);
            let (Some(shape), Some(own)) = (shape, self.own_element_bytes(buffer)) else {
                continue;
            };
            let bytes = shape
                .iter()
                .fold(self.buffer(buffer).ty.bytes(), |bytes, size| {
                    bytes.saturating_mul(*size)
                });
            let count = bytes / own;
            match first {
                Some((other, others)) if others != count => {
                    let [other, name] = [other, index].map(|index| &self.buffers()[index].name);
                    return Err(Error::invalid(format!(
                        "buffer {other} has {others} elements and buffer {name} {count}; lanes take one of each"
                    )));
                }
                Some(_) => {}
                None => first = Some((index, count)),
            }
        }
        Ok(first)
    }
}

fn blocks(count: u64, block: [u32; 3]) -> Result<u32> {
    let lanes = LaunchConfig {
        block,
        ..LaunchConfig::default()
    }
    .block_lanes();
    let blocks = count
        .checked_div(lanes)
        .map(|whole| whole + u64::from(!count.is_multiple_of(lanes)));
    let fault = || {
        Error::invalid(format!(
            "{count} elements in blocks of {lanes} lanes: no launch has as many blocks"
        ))
    };
    blocks
        .and_then(|blocks| u32::try_from(blocks).ok())
        .ok_or_else(fault)
}
