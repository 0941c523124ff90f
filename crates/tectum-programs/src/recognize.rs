//! Recognition: finds what a program computes as a whole.
//!
//! A launch over buffers of known sizes is executed symbolically: one lane represents all, one
//! iteration of a loop all its iterations. The result is an expression for each stored element.
//! From this, and never from the form of the instructions, a [`Shape`] is found, each with its
//! [`Obligation`]s proven; if one cannot be proven, the shape is refused with a [`Refusal`] that
//! says why, and the program runs unchanged.
//!
//! ```text
//! Checked ──recognize──▶ Recognized ──record_recognized──▶ the core's kernels, or the program re-rolled, or the program
//! ```

mod affine;
mod barrier_loop;
mod control;
mod cover;
mod element;
mod fold;
mod fuse;
mod graph;
mod lane;
mod loops;
mod product;
mod record;
mod reduction;
mod role;
mod shape;
mod shared;
mod shared_cells;
mod strided;
mod tree;
mod trip;

use std::fmt;

use tectum::Result;

use super::{BufferIndex, Checked, LaunchConfig};
pub use fuse::{Fused, Stage, fuse};
use lane::{StopReason, SymbolicExecutor};
pub use record::{Recognition, RecognizedLaunch};
pub use shape::{Map, Shape};

/// Every shape, for a refusal that does not depend on it.
const ANY: &str = "any shape";

/// One way to see a chain.
type Way<'a> = dyn Fn() -> std::result::Result<(Shape, Vec<Obligation>), Refusal> + 'a;

/// The launch and buffers that a program is recognised for.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The launch.
    pub launch: &'a LaunchConfig,
    /// Bytes of each buffer.
    pub sizes: &'a [u64],
    /// The bytes of buffers that are known in advance, such as those that hold sizes. The buffers
    /// must have these contents whenever the program runs. Only integers of buffers declared `read`
    /// are used, if no shape is recognised without them.
    pub contents: &'a [(BufferIndex, &'a [u8])],
    /// Whether sums of floats may be reordered, and products be rounded once with the sum. Without
    /// it, the recognised form gives the same bits as the program.
    pub reassociate: bool,
}

impl<'a> Setting<'a> {
    /// A launch over buffers of which only the sizes are known; sums of floats keep their order.
    pub fn new(launch: &'a LaunchConfig, sizes: &'a [u64]) -> Self {
        Self {
            launch,
            sizes,
            contents: &[],
            reassociate: false,
        }
    }
}

/// Why a program does not have some shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The instruction that causes it, if any.
    pub instruction: Option<usize>,
    /// The reason.
    pub reason: String,
}

/// A condition for a program to have its shape, with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obligation {
    /// The condition.
    pub claim: &'static str,
    /// Its proof for this launch and these sizes.
    pub proof: String,
}

/// A program and its recognised shape. Only [`Checked::recognize`] makes one.
#[derive(Debug, Clone)]
pub struct Recognized {
    program: Checked,
    launch: LaunchConfig,
    sizes: Vec<u64>,
    shape: Shape,
    obligations: Vec<Obligation>,
    refusals: Vec<(&'static str, Refusal)>,
    known: Vec<BufferIndex>,
}

impl Checked {
    /// Finds the shape of the program for a launch and sizes of its buffers.
    ///
    /// # Errors
    /// What [`Checked::elements`] refuses; an access that leaves its buffer for any data: the
    /// launch, the loops and the sizes contradict each other.
    ///
    /// # Example
    /// ```
    /// use tectum_programs::{LaunchConfig, Program, Setting, Shape};
    /// // One lane, two elements, one after the other.
    /// let text = "buffer x: f32 read\nbuffer y: f32 write\nldg.f32 r1, [x + 0]\nneg.f32 r2, r1\nstg.f32 [y + 0], r2\n\
    ///             ldg.f32 r1, [x + 4]\nneg.f32 r2, r1\nstg.f32 [y + 4], r2";
    /// let recognized = Program::parse(text)?.check()?.recognize(&Setting::new(&LaunchConfig::default(), &[8, 8]))?;
    /// let Shape::Map(map) = recognized.shape() else { panic!("not a map") };
    /// assert!(map.program().program().to_string().ends_with("    ldg.f32 r0, [x]\n    neg.f32 r0, r0\n    stg.f32 [y], r0\n"));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn recognize(&self, setting: &Setting<'_>) -> Result<Recognized> {
        let elements = self.elements(setting.launch, setting.sizes)?;
        let plain = Setting {
            contents: &[],
            ..*setting
        };
        let first = self.recognize_as(&plain, elements)?;
        if matches!(first.shape, Shape::General) && !setting.contents.is_empty() {
            self.recognize_as(setting, elements)
        } else {
            Ok(first)
        }
    }

    /// Finds the shape of the program, with the known contents.
    fn recognize_as(&self, setting: &Setting<'_>, elements: Option<u64>) -> Result<Recognized> {
        let mut recognized = Recognized::general(self, setting.launch, setting.sizes);
        if setting.launch.lanes() == 0 {
            recognized.refuse(
                ANY,
                Refusal {
                    instruction: None,
                    reason: "the launch has no lanes".to_owned(),
                },
            );
            return Ok(recognized);
        }
        let mut split = None;
        let followed = loop {
            let mut follower = SymbolicExecutor::new(self, setting, elements, split);
            match follower.run() {
                Ok(()) => break Ok(follower),
                Err(StopReason::Split(columns)) if split.is_none() => split = Some(columns),
                Err(StopReason::Split(_)) => {
                    break Err(Refusal {
                        instruction: None,
                        reason: "the lanes are split in two ways".to_owned(),
                    });
                }
                Err(StopReason::Refused(refusal)) => break Err(refusal),
                Err(StopReason::Invalid(error)) => return Err(error),
            }
        };
        let known = followed
            .as_ref()
            .map(|follower| follower.used.iter().copied().collect())
            .unwrap_or_default();
        match followed.and_then(cover::results) {
            Ok(results) => recognized.find(results, setting, known),
            Err(refusal) => recognized.refuse(ANY, refusal),
        }
        Ok(recognized)
    }
}

impl Recognized {
    fn general(program: &Checked, launch: &LaunchConfig, sizes: &[u64]) -> Self {
        let (program, launch, sizes) = (program.clone(), *launch, sizes.to_vec());
        Self {
            program,
            launch,
            sizes,
            shape: Shape::General,
            obligations: Vec::new(),
            refusals: Vec::new(),
            known: Vec::new(),
        }
    }

    /// A program that runs unchanged, for any shape.
    pub(super) fn unasked(program: &Checked, launch: &LaunchConfig, sizes: &[u64]) -> Self {
        let mut recognized = Self::general(program, launch, sizes);
        recognized.refuse(
            ANY,
            Refusal {
                instruction: None,
                reason: "recognition was not requested".to_owned(),
            },
        );
        recognized
    }

    /// The program.
    pub fn program(&self) -> &Checked {
        &self.program
    }

    /// The launch.
    pub fn launch(&self) -> &LaunchConfig {
        &self.launch
    }

    /// Bytes of each buffer.
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The shape of the program.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The buffers for which the shape is valid only with the given contents.
    pub fn known(&self) -> &[BufferIndex] {
        &self.known
    }

    /// The proven conditions.
    pub fn obligations(&self) -> &[Obligation] {
        &self.obligations
    }

    /// The refused shapes, each with the reason.
    pub fn refusals(&self) -> &[(&'static str, Refusal)] {
        &self.refusals
    }

    /// The refusals as sentences, one each: the shape, the reason, and the line of the program that
    /// causes it.
    pub fn reasons(&self) -> Vec<String> {
        let program = self.program.program();
        let place = |index: usize| {
            let instruction = program.instructions().get(index)?;
            Some(format!(
                " (line {}: `{}`)",
                program.span(index)?.line,
                program.instruction_text(instruction)
            ))
        };
        let sentence = |(shape, refusal): &(&'static str, Refusal)| {
            let place = refusal
                .instruction
                .map(|index| place(index).unwrap_or_else(|| format!(" (instruction {index})")))
                .unwrap_or_default();
            let shape = if *shape == ANY {
                String::new()
            } else {
                format!("not {shape}: ")
            };
            format!("{shape}{}{place}", refusal.reason)
        };
        self.refusals.iter().map(sentence).collect()
    }

    fn refuse(&mut self, shape: &'static str, refusal: Refusal) {
        self.refusals.push((shape, refusal));
    }

    /// Tries the shapes. A chain with a single result is tried as a chain first: as a map it would
    /// run on one lane.
    fn find(&mut self, results: cover::Results, setting: &Setting<'_>, known: Vec<BufferIndex>) {
        self.find_shape(results, setting);
        if !matches!(self.shape, Shape::General) {
            self.known = known;
        }
    }

    fn find_shape(&mut self, mut results: cover::Results, setting: &Setting<'_>) {
        let map = self.map(&results);
        if results.elements() > 1 || map.is_err() {
            match map {
                Ok(map) => return self.be_map(map, &results),
                Err((instruction, reason)) => self.refuse(
                    "map",
                    Refusal {
                        instruction,
                        reason,
                    },
                ),
            }
            return self.find_chain(&mut results, setting);
        }
        self.find_chain(&mut results, setting);
        if let (Shape::General, Ok(map)) = (&self.shape, map) {
            self.be_map(map, &results);
        }
    }

    fn be_map(&mut self, map: Map, results: &cover::Results) {
        self.prove_results(results);
        self.prove(
            "elements are uniform and independent",
            "every element is one expression of loads at its own number and at constant places"
                .to_owned(),
        );
        self.shape = Shape::Map(map);
    }

    fn find_chain(&mut self, results: &mut cover::Results, setting: &Setting<'_>) {
        let fold = match fold::fold(results) {
            Ok(fold) => fold,
            Err(refusal) => return self.refuse("matvec, gemm, reduction, tree", refusal),
        };
        let program = self.program.clone();
        let mut found = None;
        let ways: [(&'static str, &Way<'_>); 3] = [
            ("matvec, gemm", &|| {
                product::product(results, &fold, setting)
            }),
            ("reduction", &|| {
                reduction::reduction(results, &fold, setting)
            }),
            ("tree", &|| {
                tree::tree(results, &fold, setting, program.program())
            }),
        ];
        for (name, way) in ways {
            match way() {
                Ok(shape) => {
                    found = Some(shape);
                    break;
                }
                Err(refusal) => self.refuse(name, refusal),
            }
        }
        if let Some((shape, proofs)) = found {
            self.prove_results(results);
            if let Some(lanes) = fold.lanes {
                let proof = format!(
                    "the first lane ends with {} over what the lanes 0 to {} stored in shared memory, each once",
                    fold.op,
                    lanes - 1
                );
                self.prove("the block combines every lane's part once", proof);
                self.prove(
                    "no two lanes race",
                    "between two barriers a lane stores to its own place alone, and none loads a place that another stores".to_owned(),
                );
            }
            self.obligations.extend(proofs);
            self.shape = shape;
        }
    }

    fn map(&self, results: &cover::Results) -> std::result::Result<Map, (Option<usize>, String)> {
        let program = self.program.program();
        let elements = element::elements(results, &self.sizes, |buffer| {
            program.buffer(buffer).name.clone()
        });
        let elements = elements.map_err(|(instruction, reason)| (Some(instruction), reason))?;
        Map::of(elements, program.name(), program.buffers()).map_err(|reason| (None, reason))
    }

    fn prove(&mut self, claim: &'static str, proof: String) {
        self.obligations.push(Obligation { claim, proof });
    }

    /// Conditions of every shape.
    fn prove_results(&mut self, results: &cover::Results) {
        let program = self.program.program();
        let names: Vec<&str> = results
            .outputs
            .iter()
            .map(|output| program.buffer(output.buffer).name.as_str())
            .collect();
        let order: Vec<String> = results
            .order
            .iter()
            .map(|(var, extent)| format!("{var} < {extent}"))
            .collect();
        let counted = if order.is_empty() {
            "one element".to_owned()
        } else {
            order.join(", ")
        };
        let proof = format!(
            "{}: {} elements counted by {counted}, each stored once",
            names.join(", "),
            results.elements()
        );
        self.prove("stores cover their buffers", proof);
        self.prove(
            "no lane faults",
            "every offset was bounded by the sizes given, and no divisor is 0".to_owned(),
        );
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.instruction {
            Some(instruction) => write!(f, "{} (instruction {instruction})", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

#[cfg(test)]
mod tests;
