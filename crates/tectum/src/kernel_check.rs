//! Compares the native twin of a kernel with its device code, on every device that is present.

use std::fmt;
use std::sync::Arc;

use crate::device::{Device, DeviceKind};
use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::arguments::Parameter;
use crate::kernel::{Access, Groups, Kernel, groups_for};
use crate::plan::PlanBuilder;
use crate::view::View;

/// What a binding holds before a launch that writes it: no operation makes this NaN.
const POISON: u32 = 0x7fed_cba9;

/// The arguments of a launch: an array for each binding and a value for each parameter, in the
/// order of their declaration, with the tolerance of the results.
#[derive(Debug, Clone)]
pub struct KernelCase {
    name: String,
    arrays: Vec<Array>,
    params: Vec<u32>,
    /// The number of the first parameter beyond 32 bits.
    oversized: Option<usize>,
    groups: Option<Groups>,
    absolute: f64,
    relative: f64,
}

/// The contents of a binding.
#[derive(Debug, Clone)]
struct Array {
    dtype: DType,
    len: usize,
    /// Its words before the launch; those of [`POISON`] if there are none.
    before: Option<Vec<u32>>,
    /// Its words after the launch, if the caller knows them.
    expected: Option<Vec<u32>>,
}

impl KernelCase {
    /// A case without arguments, exact: every result has to equal that of the twin.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arrays: Vec::new(),
            params: Vec::new(),
            oversized: None,
            groups: None,
            absolute: 0.0,
            relative: 0.0,
        }
    }

    /// Adds the next binding with its contents before the launch.
    #[must_use]
    pub fn array<T: Element>(mut self, contents: &[T]) -> Self {
        self.arrays.push(Array {
            dtype: T::DTYPE,
            len: contents.len(),
            before: Some(words_of(contents)),
            expected: None,
        });
        self
    }

    /// Adds the next binding as one of so many elements that the kernel writes. Elements that it
    /// leaves out are NaN, or 2,146,290,601 as an integer.
    #[must_use]
    pub fn result<T: Element>(mut self, len: usize) -> Self {
        self.arrays.push(Array {
            dtype: T::DTYPE,
            len,
            before: None,
            expected: None,
        });
        self
    }

    /// Sets what the last binding holds after the launch. It is then the reference, for the twin
    /// too.
    #[must_use]
    pub fn expected<T: Element>(mut self, contents: &[T]) -> Self {
        if let Some(last) = self.arrays.last_mut() {
            last.expected = Some(words_of(contents));
        }
        self
    }

    /// Adds the next parameter.
    #[must_use]
    pub fn param<P: Parameter>(mut self, value: P) -> Self {
        let place = self.params.len();
        if !value.write(&mut self.params) {
            self.oversized.get_or_insert(place);
        }
        self
    }

    /// Sets the number of workgroups. Without it there are as many as the longest array needs, with
    /// an element an invocation.
    #[must_use]
    pub fn groups(mut self, groups: impl Into<Groups>) -> Self {
        self.groups = Some(groups.into());
        self
    }

    /// Sets how far a float may be from its reference r: `absolute` + `relative`·|r|. Integers are
    /// compared exactly.
    #[must_use]
    pub fn tolerance(mut self, absolute: f64, relative: f64) -> Self {
        (self.absolute, self.relative) = (absolute, relative);
        self
    }

    /// Refuses arguments that are not those of a kernel, where a plan does not.
    fn check(&self, kernel: &Kernel) -> Result<()> {
        let fault = |text: String| Err(Error::invalid(format!("{}: {text}", self.name)));
        let (bindings, params) = (kernel.bindings(), kernel.params());
        if self.arrays.len() != bindings.len() || self.params.len() != params.len() {
            return fault(format!(
                "{} arrays and {} parameters; {} and {} needed",
                self.arrays.len(),
                self.params.len(),
                bindings.len(),
                params.len()
            ));
        }
        if let Some(place) = self.oversized {
            return fault(format!("parameter {} exceeds 32 bits", params[place].name));
        }
        if !(self.absolute >= 0.0 && self.relative >= 0.0) {
            return fault(format!(
                "a tolerance of {} and {}; numbers from 0 needed",
                self.absolute, self.relative
            ));
        }
        for (array, binding) in self.arrays.iter().zip(bindings) {
            let (name, words) = (binding.name, array.len * (array.dtype.bytes() / 4));
            if array.before.is_none() && binding.access != Access::Write {
                return fault(format!("binding {name} is read; it needs contents"));
            }
            if let Some(expected) = &array.expected {
                if !binding.access.writes() {
                    return fault(format!(
                        "binding {name} is not written; nothing is expected"
                    ));
                }
                if expected.len() != words {
                    return fault(format!(
                        "binding {name} has {words} words, and {} are expected",
                        expected.len()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Launches the kernel on a device. Returns the words of each binding that it writes.
    fn run(&self, kernel: &Arc<Kernel>, device: &Device) -> Result<Vec<Vec<u32>>> {
        let mut plan = PlanBuilder::new(self.name.as_str());
        let views: Vec<View> = self
            .arrays
            .iter()
            .zip(kernel.bindings())
            .map(|(array, binding)| plan.state(binding.name, array.dtype, array.len))
            .collect();
        let longest = self.arrays.iter().map(|array| array.len).max().unwrap_or(0);
        let groups = self.groups.unwrap_or_else(|| groups_for(longest));
        plan.launch_dynamic(kernel, &views, &self.params, groups)?;
        let mut run = plan.finish()?.compile(device)?;
        for (array, view) in self.arrays.iter().zip(&views) {
            let view = view.reinterpret(DType::U32);
            match &array.before {
                Some(words) => run.write_state(view, words)?,
                None => run.write_state(view, &poison(view.len())?)?,
            }
        }
        run.run()?;
        let written = views.iter().zip(kernel.bindings());
        written
            .filter(|(_, binding)| binding.access.writes())
            .map(|(view, _)| run.read_state(view.reinterpret(DType::U32)))
            .collect()
    }

    /// The first element of the results that differs from its reference: what is expected, or the
    /// result of the twin.
    fn difference(
        &self,
        kernel: &Kernel,
        found: &[Vec<u32>],
        twin: &[Vec<u32>],
    ) -> Option<Difference> {
        let written = self.arrays.iter().zip(kernel.bindings());
        let mut results = written
            .filter(|(_, binding)| binding.access.writes())
            .zip(found.iter().zip(twin));
        results.find_map(|((array, binding), (found, twin))| {
            let reference = array.expected.as_ref().unwrap_or(twin);
            let width = array.dtype.bytes() / 4;
            let elements = found.chunks(width).zip(reference.chunks(width));
            let mut differing = elements
                .enumerate()
                .filter(|(_, (found, expected))| !self.is_near(array.dtype, found, expected));
            let (element, (found, expected)) = differing.next()?;
            Some(Difference {
                binding: binding.name.to_owned(),
                element,
                found: Number::of(array.dtype, found),
                expected: Number::of(array.dtype, expected),
                differing: 1 + differing.count(),
                len: array.len,
            })
        })
    }

    fn is_near(&self, dtype: DType, found: &[u32], expected: &[u32]) -> bool {
        // The NaN of an element that was left out is not another NaN.
        if [found, expected].concat().contains(&POISON) {
            return found == expected;
        }
        let (Number::Float(found), Number::Float(expected)) =
            (Number::of(dtype, found), Number::of(dtype, expected))
        else {
            return found == expected;
        };
        // An infinite reference has no tolerance.
        let bound = self.absolute + self.relative * expected.abs();
        found == expected
            || (found.is_nan() && expected.is_nan())
            || (expected.is_finite() && (found - expected).abs() <= bound)
    }
}

fn words_of<T: Element>(contents: &[T]) -> Vec<u32> {
    bytemuck::cast_slice(contents).to_vec()
}

fn poison(words: usize) -> Result<Vec<u32>> {
    let mut poison = Vec::new();
    poison.try_reserve_exact(words).map_err(|_| {
        Error::new(
            ErrorKind::OutOfMemory,
            format!("{words} words could not be allocated"),
        )
    })?;
    poison.resize(words, POISON);
    Ok(poison)
}

/// An element of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of f32 or f64.
    Float(f64),
    /// Of i32 or u32.
    Integer(i64),
}

impl Number {
    fn of(dtype: DType, words: &[u32]) -> Self {
        match (dtype, words) {
            (DType::F64, &[low, high]) => {
                Number::Float(f64::from_bits(u64::from(high) << 32 | u64::from(low)))
            }
            (DType::I32, &[word]) => Number::Integer(i64::from(word.cast_signed())),
            (DType::U32, &[word]) => Number::Integer(i64::from(word)),
            _ => Number::Float(f64::from(f32::from_bits(words[0]))),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Float(number) => write!(f, "{number:?}"),
            Number::Integer(number) => write!(f, "{number}"),
        }
    }
}

/// The first element of a launch's results that differs from its reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The binding.
    pub binding: String,
    /// The element.
    pub element: usize,
    /// Its value on the device.
    pub found: Number,
    /// The reference.
    pub expected: Number,
    /// How many elements of the binding differ.
    pub differing: usize,
    /// Elements of the binding.
    pub len: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}[{}] is {}, expected {}; {} of {} elements differ",
            self.binding, self.element, self.found, self.expected, self.differing, self.len
        )
    }
}

/// One case on one device.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelCheckRow {
    /// The device's id; on `cpu` the twin ran.
    pub device: String,
    /// The case's name.
    pub case: String,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
}

/// What [`check_kernel`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelCheck {
    /// The kernel's name.
    pub kernel: String,
    /// A row for each device and case.
    pub rows: Vec<KernelCheckRow>,
    /// Devices, or cases on them, that did not run, with the reason.
    pub left_out: Vec<String>,
    /// Whether any result had a reference that its own code did not compute.
    has_comparison: bool,
}

impl KernelCheck {
    /// Whether something was compared, and nothing differs.
    pub fn passed(&self) -> bool {
        self.has_comparison && self.rows.iter().all(|row| row.difference.is_none())
    }

    /// The check as a result.
    ///
    /// # Errors
    /// `Mismatch` with the first difference of each device and case; `Unsupported` if nothing could
    /// be compared, because no device ran the device code and no result was expected.
    pub fn into_result(self) -> Result<KernelCheck> {
        let faults: Vec<String> = self
            .rows
            .iter()
            .filter_map(|row| {
                let difference = row.difference.as_ref()?;
                Some(format!("{}, {}: {difference}", row.device, row.case))
            })
            .collect();
        if !faults.is_empty() {
            return Err(Error::new(
                ErrorKind::Mismatch,
                format!("kernel {}: {}", self.kernel, faults.join("; ")),
            ));
        }
        if self.has_comparison {
            return Ok(self);
        }
        let reasons = match &self.left_out[..] {
            [] => "no device that runs device code is present; software Vulkan is one (on Debian mesa-vulkan-drivers)".to_owned(),
            reasons => reasons.join("; "),
        };
        Err(Error::unsupported(format!(
            "kernel {}: nothing was compared: {reasons}",
            self.kernel
        )))
    }
}

/// Runs the native twin of a kernel and its device code on every device that is present, and
/// compares their results.
///
/// The reference of a result is that of the twin on the CPU, unless a case says what it expects.
/// Devices without an element type of the kernel, or that would end its loops, are left out, with
/// the reason.
///
/// # Errors
/// `Invalid` for arguments that are not those of the kernel, a launch that a plan refuses or a twin
/// that panics; what devices report. A difference is no error here:
/// [`KernelCheck::into_result`].
///
/// # Example
/// ```
/// use tectum::{KernelCase, check_kernel};
/// tectum::kernel_arguments! {
///     /// `y[i] = 2 x[i]` for `i < n`.
///     struct Doubled { read x: f32, write y: f32; n: usize }
/// }
/// let doubled = Doubled::define("doubled")
///     .body("@compute @workgroup_size(64)
///            fn main(@builtin(global_invocation_id) id: vec3<u32>) {
///                if id.x < params.n { y[id.x] = 2.0 * x[id.x]; }
///            }")
///     .native(|_, Doubled { x, y, n }| y[..n].iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x))?;
/// let case = KernelCase::new("three numbers")
///     .array(&[1.0f32, -0.5, 3.0])
///     .result::<f32>(3)
///     .expected(&[2.0f32, -1.0, 6.0])
///     .param(3usize);
/// let check = check_kernel(&doubled, &[case])?.into_result()?;
/// assert_eq!((check.rows[0].device.as_str(), &check.rows[0].difference), ("cpu", &None));
/// # Ok::<(), tectum::Error>(())
/// ```
pub fn check_kernel(kernel: &Arc<Kernel>, cases: &[KernelCase]) -> Result<KernelCheck> {
    let (mut devices, mut left_out) = (Vec::new(), Vec::new());
    for info in Device::list() {
        if info.kind == DeviceKind::Null {
            continue;
        }
        match Device::open(&info.id) {
            Ok(device) => devices.push(device),
            Err(error) => left_out.push(format!("{}: {error}", info.id)),
        }
    }
    let mut check = check_kernel_on(kernel, cases, &devices)?;
    left_out.append(&mut check.left_out);
    Ok(KernelCheck { left_out, ..check })
}

/// As [`check_kernel`], on the CPU, where the twin runs, and on these devices.
///
/// # Errors
/// As [`check_kernel`].
pub fn check_kernel_on(
    kernel: &Arc<Kernel>,
    cases: &[KernelCase],
    devices: &[Device],
) -> Result<KernelCheck> {
    let at_kernel = |error: Error| error.at(format_args!("kernel {}", kernel.name()));
    let cpu = Device::open("cpu")?;
    let mut check = KernelCheck {
        kernel: kernel.name().to_owned(),
        rows: Vec::new(),
        left_out: Vec::new(),
        has_comparison: false,
    };
    let mut twins = Vec::with_capacity(cases.len());
    for case in cases {
        case.check(kernel).map_err(at_kernel)?;
        let twin = case.run(kernel, &cpu)?;
        check.has_comparison |= case.arrays.iter().any(|array| array.expected.is_some());
        check.rows.push(KernelCheckRow {
            device: cpu.info().id.clone(),
            case: case.name.clone(),
            difference: case.difference(kernel, &twin, &twin),
        });
        twins.push(twin);
    }
    let others = devices
        .iter()
        .filter(|device| !matches!(device.info().kind, DeviceKind::Cpu | DeviceKind::Null));
    for device in others {
        for (case, twin) in cases.iter().zip(&twins) {
            let id = &device.info().id;
            let found = match case.run(kernel, device) {
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    check.left_out.push(format!("{id}, {}: {error}", case.name));
                    continue;
                }
                Err(error) => return Err(error.at(id)),
            };
            check.has_comparison = true;
            check.rows.push(KernelCheckRow {
                device: id.clone(),
                case: case.name.clone(),
                difference: case.difference(kernel, &found, twin),
            });
        }
    }
    Ok(check)
}

#[cfg(test)]
mod tests;
