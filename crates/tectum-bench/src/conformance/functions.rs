//! The largest error of every elementary function over all exponents: the table of
//! `tectum verify --functions`.
//!
//! Arguments are spread evenly over each exponent of both signs, with the neighbours of every
//! special value, or are simply all of them. Each result is compared with a reference of twice the
//! precision, in units in the last place of the exact value.

use std::fmt::LowerExp;

use rayon::prelude::*;
use serde::Serialize;
use tectum::operation::elementwise;
use tectum::{
    DType, Device, DeviceKind, Element, Error, ErrorKind, Executable, PlanBuilder, Receipt, Result,
    Session, View, Watch, WorkProgress,
};

use super::double_double::{ScaledDoubleDouble, exact};

/// Arguments of one run.
const BATCH: u64 = 1 << 20;
/// Bits whose neighbours within 4 are all tested, in both signs: ends, splits and edges of ranges
/// of the f32 functions.
const EDGES_F32: [u32; 23] = [
    0,
    0x0080_0000,
    0x3f20_0000,
    0x3f35_04f3,
    0x3f6c_0000,
    0x3f80_0000,
    0x4000_0000,
    0x407c_0000,
    0x4120_0000,
    0x4130_0000,
    0x4168_0000,
    0x41a0_0000,
    0x42ae_ac4f,
    0x42b1_7217,
    0x42cf_f1b4,
    0x42d0_0000,
    0x42e0_0000,
    0x4300_0000,
    0x4315_0000,
    0x4649_0c00,
    0x4a80_0000,
    0x7f80_0000,
    0x7fc0_0000,
];

/// An elementary function and the error stated for it, in units in the last place.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// Its name in the op table.
    pub name: &'static str,
    /// The bound where + − · ÷ and the square root are correctly rounded: on the CPU.
    pub ulp: f64,
    /// The bound elsewhere: includes what Vulkan allows for a division (2.5 ulp) or a square root,
    /// and for sums that a driver fuses. Results below the smallest normal number may be 0 there,
    /// and arguments below it may count as 0.
    pub device_ulp: f64,
}

/// Every elementary function on f32.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "sqrt",
        ulp: 0.5,
        device_ulp: 3.0,
    },
    Function {
        name: "rsqrt",
        ulp: 1.5,
        device_ulp: 5.0,
    },
    Function {
        name: "reciprocal",
        ulp: 0.5,
        device_ulp: 2.5,
    },
    Function {
        name: "exp",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "exp2",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "log",
        ulp: 0.9,
        device_ulp: 2.0,
    },
    Function {
        name: "log2",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "tanh",
        ulp: 2.0,
        device_ulp: 2.4,
    },
    Function {
        name: "erf",
        ulp: 1.3,
        device_ulp: 2.0,
    },
    Function {
        name: "sin",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "cos",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "sigmoid",
        ulp: 2.3,
        device_ulp: 2.0,
    },
    Function {
        name: "silu",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "elu",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "gelu",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "gelu_erf",
        ulp: 1.8,
        device_ulp: 2.0,
    },
    Function {
        name: "tan",
        ulp: 3.0,
        device_ulp: 7.0,
    },
    Function {
        name: "asin",
        ulp: 3.0,
        device_ulp: 8.0,
    },
    Function {
        name: "acos",
        ulp: 3.0,
        device_ulp: 8.0,
    },
    Function {
        name: "atan",
        ulp: 3.0,
        device_ulp: 5.0,
    },
    Function {
        name: "sinh",
        ulp: 3.0,
        device_ulp: 4.0,
    },
    Function {
        name: "cosh",
        ulp: 3.0,
        device_ulp: 4.0,
    },
    Function {
        name: "asinh",
        ulp: 3.0,
        device_ulp: 4.0,
    },
    Function {
        name: "acosh",
        ulp: 4.0,
        device_ulp: 8.0,
    },
    Function {
        name: "atanh",
        ulp: 3.0,
        device_ulp: 6.0,
    },
];

/// Every elementary function on f64, measured where the device has the type.
pub const FUNCTIONS_F64: &[Function] = &[
    Function {
        name: "sqrt",
        ulp: 0.5,
        device_ulp: 3.0,
    },
    Function {
        name: "rsqrt",
        ulp: 1.5,
        device_ulp: 5.0,
    },
    Function {
        name: "reciprocal",
        ulp: 0.5,
        device_ulp: 2.5,
    },
    Function {
        name: "exp",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "exp2",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "log",
        ulp: 0.9,
        device_ulp: 2.0,
    },
    Function {
        name: "log2",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "tanh",
        ulp: 1.8,
        device_ulp: 2.4,
    },
    Function {
        name: "erf",
        ulp: 1.5,
        device_ulp: 2.0,
    },
    Function {
        name: "sin",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "cos",
        ulp: 1.1,
        device_ulp: 2.0,
    },
    Function {
        name: "sigmoid",
        ulp: 2.3,
        device_ulp: 2.0,
    },
    Function {
        name: "silu",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "elu",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "gelu",
        ulp: 1.6,
        device_ulp: 2.0,
    },
    Function {
        name: "gelu_erf",
        ulp: 1.8,
        device_ulp: 2.0,
    },
];

/// Which arguments are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// 2ᵏ for each exponent and sign of f32, 2ᵏ⁻⁸ and at most 2⁸ for f64, and the neighbours of
    /// special values.
    Exponents(u32),
    /// All 2³² of f32; for f64 2¹⁰ for each exponent and sign.
    Exhaustive,
}

/// The result for one function.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionReport {
    /// The function.
    pub name: &'static str,
    /// The type of argument and result.
    pub dtype: DType,
    /// Arguments tested.
    pub arguments: u64,
    /// The largest error in units in the last place.
    pub worst_ulp: f64,
    /// The bound stated for this device.
    pub stated_ulp: f64,
    /// The argument of the largest error, and its bits.
    pub at: String,
    /// The device's result there.
    pub got: String,
    /// The exact result there.
    pub exact: String,
    /// Whether the bound held.
    pub passed: bool,
}

/// What `verify --functions` found.
#[derive(Debug, Serialize)]
pub struct FunctionsReport {
    /// One row for each function.
    pub functions: Vec<FunctionReport>,
    /// Where it ran, with which code.
    pub receipt: Receipt,
}

impl FunctionsReport {
    /// The report as a result: an error naming the first function beyond its bound.
    ///
    /// # Errors
    /// `Mismatch` if there is one.
    pub fn into_result(self) -> Result<FunctionsReport> {
        let Some(row) = self.functions.iter().find(|row| !row.passed) else {
            return Ok(self);
        };
        Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "{}: {}_{}({}) = {}, exactly {}: {:.2} ulp, {} stated",
                self.receipt.device.id,
                row.name,
                row.dtype.wgsl(),
                row.at,
                row.got,
                row.exact,
                row.worst_ulp,
                row.stated_ulp
            ),
        ))
    }
}

/// Measures every function on a device.
///
/// # Errors
/// What the device reports; a result beyond its bound is not an error here but is in the report.
/// `Cancelled` if the watch, which sees each function before it is measured, breaks it off.
pub fn functions(device: &Device, sweep: Sweep, watch: &mut Watch<'_>) -> Result<FunctionsReport> {
    let has_f64 = device.info().dtypes.contains(&DType::F64);
    let total = (FUNCTIONS.len() + if has_f64 { FUNCTIONS_F64.len() } else { 0 }) as u64;
    let mut session = Session::new(device);
    let mut rows = Vec::new();
    for function in FUNCTIONS {
        WorkProgress {
            stage: function.name,
            done: rows.len() as u64,
            total,
        }
        .report(watch)?;
        let op = elementwise::operation(function.name)
            .ok_or_else(|| Error::invalid(format!("{}: no such operation", function.name)))?;
        rows.push(measure::<f32>(
            device,
            function,
            sweep,
            |x| (op.reference)(f64::from(x), 0.0),
            &mut session,
        )?);
    }
    if has_f64 {
        for function in FUNCTIONS_F64 {
            WorkProgress {
                stage: function.name,
                done: rows.len() as u64,
                total,
            }
            .report(watch)?;
            let exact = |x: f64| {
                exact(function.name, x).expect("invariant: the table holds elementary functions")
            };
            rows.push(measure::<f64>(
                device,
                function,
                sweep,
                exact,
                &mut session,
            )?);
        }
    }
    Ok(FunctionsReport {
        functions: rows,
        receipt: session.receipt(),
    })
}

/// What the sweep needs from a float type.
trait Float: Element + LowerExp + Sync {
    /// A function's exact value, with enough precision to measure the error.
    type Exact: Copy + Send + LowerExp;
    /// How many arguments a sweep has.
    fn count(sweep: Sweep) -> u64;
    /// An argument of the sweep.
    fn argument(sweep: Sweep, index: u64) -> Self;
    /// The error in units in the last place; on a device that flushes, subnormal results may be 0.
    fn error(self, exact: Self::Exact, flushes: bool) -> f64;
    /// Whether it is below the smallest normal number.
    fn is_small(self) -> bool;
    fn bits(self) -> String;
}

/// One argument with its result.
#[derive(Clone, Copy)]
struct Found<T: Float> {
    error: f64,
    argument: T,
    got: T,
    exact: T::Exact,
}

fn measure<T: Float>(
    device: &Device,
    function: &Function,
    sweep: Sweep,
    exact: impl Fn(T) -> T::Exact + Sync,
    session: &mut Session,
) -> Result<FunctionReport> {
    let count = T::count(sweep);
    let mut plan = PlanBuilder::new("functions");
    let (x, y) = (
        plan.input("x", T::DTYPE, BATCH as usize),
        plan.output("y", T::DTYPE, BATCH as usize),
    );
    plan.unary(function.name, x, y)?;
    let mut run = plan.finish()?.compile(device)?;
    session.uses(&run);
    let on_cpu = device.info().kind == DeviceKind::Cpu;
    let mut worst: Option<Found<T>> = None;
    for start in (0..count).step_by(BATCH as usize) {
        let argument = |place: usize| T::argument(sweep, (start + place as u64).min(count - 1));
        step(&mut run, x, argument, session)?;
        let asked = (count - start).min(BATCH) as usize;
        let found = run.output::<T>(y)[..asked]
            .par_iter()
            .enumerate()
            .map(|(place, &got)| {
                let argument = argument(place);
                let exact_here = exact(argument);
                let mut error = got.error(exact_here, !on_cpu);
                if !on_cpu && argument.is_small() {
                    error = error.min(got.error(exact(T::zeroed()), true));
                }
                Found {
                    error,
                    argument,
                    got,
                    exact: exact_here,
                }
            });
        let greater = |a: Found<T>, b: Found<T>| if b.error > a.error { b } else { a };
        worst = worst
            .into_iter()
            .chain(found.reduce_with(greater))
            .reduce(greater);
    }
    let worst = worst.ok_or_else(|| Error::invalid("a sweep of no arguments"))?;
    let stated_ulp = if on_cpu {
        function.ulp
    } else {
        function.device_ulp
    };
    Ok(FunctionReport {
        name: function.name,
        dtype: T::DTYPE,
        arguments: count,
        worst_ulp: worst.error,
        stated_ulp,
        at: format!("{:e} {}", worst.argument, worst.argument.bits()),
        got: format!("{:e}", worst.got),
        exact: format!("{:e}", worst.exact),
        passed: worst.error <= stated_ulp,
    })
}

fn step<T: Float>(
    run: &mut Executable,
    x: View,
    argument: impl Fn(usize) -> T + Sync,
    session: &mut Session,
) -> Result<()> {
    run.input::<T>(x)
        .par_iter_mut()
        .enumerate()
        .for_each(|(place, x)| *x = argument(place));
    let start = std::time::Instant::now();
    let stats = run.run()?;
    session.record(&stats, start.elapsed().as_nanos() as u64);
    Ok(())
}

/// A well-mixed word, for the bits below those that a sweep enumerates.
fn mixed(index: u64) -> u64 {
    let x = (index ^ (index >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

impl Float for f32 {
    type Exact = f64;

    fn count(sweep: Sweep) -> u64 {
        match sweep {
            Sweep::Exponents(k) => (512 << k) + 18 * EDGES_F32.len() as u64,
            Sweep::Exhaustive => 1 << 32,
        }
    }

    fn argument(sweep: Sweep, index: u64) -> f32 {
        let Sweep::Exponents(k) = sweep else {
            return f32::from_bits(index as u32);
        };
        let spread = 512 << k;
        if index < spread {
            let below = 23 - k.min(23);
            return f32::from_bits(
                (index << below) as u32 | (mixed(index) as u32 & ((1 << below) - 1)),
            );
        }
        let place = (index - spread) as u32;
        let bits = EDGES_F32[(place / 18) as usize]
            .wrapping_add(place % 9)
            .wrapping_sub(4);
        f32::from_bits(bits ^ if place % 18 < 9 { 0 } else { 1 << 31 })
    }

    fn error(self, exact: f64, flushes: bool) -> f64 {
        if self.is_nan() || exact.is_nan() {
            return if self.is_nan() && exact.is_nan() {
                0.0
            } else {
                f64::INFINITY
            };
        }
        let rounded = exact as f32;
        let flushed = flushes
            && exact.abs() < f64::from(f32::MIN_POSITIVE)
            && self.abs() <= f32::MIN_POSITIVE;
        if flushed || (self == rounded && self.is_infinite()) {
            return 0.0;
        }
        // An infinity represents the number after the greatest.
        let got = if self.is_infinite() {
            f64::from(self.signum()) * 2f64.powi(128)
        } else {
            f64::from(self)
        };
        let exponent = ((exact.abs().to_bits() >> 52) as i32 - 1023).max(-126);
        let error = (got - exact).abs() / 2f64.powi(exponent - 23);
        // The reference is itself rounded: a correctly rounded result is within a half.
        if self == rounded {
            error.min(0.5)
        } else {
            error
        }
    }

    fn is_small(self) -> bool {
        self.abs() < f32::MIN_POSITIVE
    }

    fn bits(self) -> String {
        format!("0x{:08x}", self.to_bits())
    }
}

/// As [`EDGES_F32`], for f64.
const EDGES_F64: [u64; 21] = [
    0,
    0x0010_0000_0000_0000,
    0x3fe4_0000_0000_0000,
    0x3fe6_a09e_667f_3bcd,
    0x3fed_8000_0000_0000,
    0x3ff0_0000_0000_0000,
    0x4000_0000_0000_0000,
    0x4018_0000_0000_0000,
    0x4034_0000_0000_0000,
    0x4036_0000_0000_0000,
    0x4043_8000_0000_0000,
    0x4086_2e42_fefa_39ef,
    0x4087_4910_d52d_3052,
    0x4087_5000_0000_0000,
    0x4087_a000_0000_0000,
    0x4090_0000_0000_0000,
    0x4090_cc00_0000_0000,
    0x4129_21fa_0000_0000,
    0x4270_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
];
/// Arguments next to multiples of π/2, whose sines and cosines are the hardest.
const NEAR_ZEROS: u64 = 4096;

impl Float for f64 {
    type Exact = ScaledDoubleDouble;

    fn count(sweep: Sweep) -> u64 {
        let spread = match sweep {
            Sweep::Exponents(k) => 4096 << k.saturating_sub(8).min(8),
            Sweep::Exhaustive => 4096 << 10,
        };
        spread + 18 * EDGES_F64.len() as u64 + NEAR_ZEROS
    }

    fn argument(sweep: Sweep, index: u64) -> f64 {
        let spread = f64::count(sweep) - 18 * EDGES_F64.len() as u64 - NEAR_ZEROS;
        if index < spread {
            let below = 64 - spread.trailing_zeros();
            return f64::from_bits((index << below) | (mixed(index) & ((1 << below) - 1)));
        }
        let place = index - spread;
        if let Some(multiple) = place.checked_sub(18 * EDGES_F64.len() as u64) {
            // Multiples up to 2⁵², with every number of bits.
            let multiple = (mixed(multiple) >> 12 >> (multiple % 52)) | 1;
            return multiple as f64 * std::f64::consts::FRAC_PI_2;
        }
        let bits = EDGES_F64[(place / 18) as usize]
            .wrapping_add(place % 9)
            .wrapping_sub(4);
        f64::from_bits(bits ^ if place % 18 < 9 { 0 } else { 1 << 63 })
    }

    fn error(self, exact: ScaledDoubleDouble, flushes: bool) -> f64 {
        if self.is_nan() || exact.is_nan() {
            return if self.is_nan() && exact.is_nan() {
                0.0
            } else {
                f64::INFINITY
            };
        }
        let rounded = exact.value();
        let flushed =
            flushes && rounded.abs() < f64::MIN_POSITIVE && self.abs() <= f64::MIN_POSITIVE;
        if flushed || (self == rounded && (self.is_infinite() || self == 0.0)) {
            0.0
        } else {
            exact.error_ulp(self)
        }
    }

    fn is_small(self) -> bool {
        self.abs() < f64::MIN_POSITIVE
    }

    fn bits(self) -> String {
        format!("0x{:016x}", self.to_bits())
    }
}
