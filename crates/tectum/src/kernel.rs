//! A kernel: device code written once in WGSL, with its bindings, its parameters and its native
//! twin.
//!
//! A kernel's file is a *body*: a header comment and one entry point. Its arguments are declared
//! once, by [`kernel_arguments!`](crate::kernel_arguments): the declarations in WGSL, the arguments
//! of the native twin and those of a launch come from it. A device never sees a tensor operation;
//! it sees a kernel and the regions bound to it.

pub mod arguments;
pub mod lanes;
pub mod math;
pub mod native;
pub mod order;
pub mod pack;
pub mod random;
pub mod reference;
mod translate;
mod workgroups;

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, OnceLock};

pub use arguments::TypedKernel;
use arguments::{Declaration, KernelArguments, NativeArguments};

use crate::content_hash::{CodeText, ContentHash, ContentHasher};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::view::View;
pub use native::NativeCall;
pub use translate::{Translations, VULKAN_ONLY};
pub use workgroups::{Groups, MAX_GROUPS, WORKGROUP, groups_for};

/// The revision of this crate: a hash of its sources.
pub(crate) const REVISION: &str = env!("TECTUM_REVISION");

/// Maximum storage bindings of one kernel in the portable profile.
pub const MAX_BINDINGS: usize = 8;
/// Maximum parameter words of one kernel: a uniform range of 256 bytes.
pub const MAX_PARAMS: usize = 64;

/// The named preludes that a body may include.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prelude {
    /// Our exp, exp2, log, log2, tanh, erf, sigmoid, silu, gelu in both forms, sin, cos and
    /// NaN-aware min, max, relu on the type `real` (`kernel/wgsl/math.wgsl`): f64 in a kernel that
    /// binds f64, else f32.
    Math,
    /// Our sign, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, pow, fmod and mod on
    /// `real` (`kernel/wgsl/functions.wgsl`); includes [`Prelude::Math`].
    Functions,
    /// Philox4x32-10 and the exact conversions to uniforms and normals (`kernel/wgsl/random.wgsl`).
    Random,
    /// Reductions over a workgroup (`kernel/wgsl/tree.wgsl`); includes [`Prelude::Math`].
    Tree,
    /// Total order of floats as integer keys (`kernel/wgsl/order.wgsl`).
    Order,
    /// The activation that a product ends with (`kernel/wgsl/activation.wgsl`); includes
    /// [`Prelude::Math`].
    Activation,
    /// The number of an invocation among all of a launch (`kernel/wgsl/linear_index.wgsl`): a
    /// kernel that takes its index from `tectum_linear_index(invocation)`, with the argument
    /// `invocation: TectumInvocation` of `main`, may have more than [`MAX_GROUPS`] workgroups.
    LinearIndex,
    /// Half-width floats as bits (`kernel/wgsl/pack.wgsl`).
    Pack,
    /// Values of caches as halves and codes (`kernel/wgsl/cache.wgsl`); requires [`Prelude::Pack`].
    Cache,
}

impl Prelude {
    /// Its source texts; with `double`, `real` is f64.
    #[doc(hidden)]
    pub fn wgsl(self, double: bool) -> [&'static str; 2] {
        match self {
            Prelude::Math if double => [
                include_str!("kernel/wgsl/math_f64.wgsl"),
                include_str!("kernel/wgsl/math.wgsl"),
            ],
            Prelude::Math => [
                include_str!("kernel/wgsl/math_f32.wgsl"),
                include_str!("kernel/wgsl/math.wgsl"),
            ],
            Prelude::Functions if double => [
                include_str!("kernel/wgsl/functions_f64.wgsl"),
                include_str!("kernel/wgsl/functions.wgsl"),
            ],
            Prelude::Functions => [
                include_str!("kernel/wgsl/functions_f32.wgsl"),
                include_str!("kernel/wgsl/functions.wgsl"),
            ],
            Prelude::Random => [include_str!("kernel/wgsl/random.wgsl"), ""],
            Prelude::Tree => [include_str!("kernel/wgsl/tree.wgsl"), ""],
            Prelude::Order => [include_str!("kernel/wgsl/order.wgsl"), ""],
            Prelude::Activation => [include_str!("kernel/wgsl/activation.wgsl"), ""],
            Prelude::LinearIndex => [include_str!("kernel/wgsl/linear_index.wgsl"), ""],
            Prelude::Pack => [include_str!("kernel/wgsl/pack.wgsl"), ""],
            Prelude::Cache => [include_str!("kernel/wgsl/cache.wgsl"), ""],
        }
    }
}

/// How a kernel uses a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Read,
    /// Every element of the result is written and none is read.
    Write,
    /// Read and written in place.
    ReadWrite,
}

impl Access {
    /// Whether the kernel changes the binding.
    pub fn writes(self) -> bool {
        self != Access::Read
    }
}

/// One storage binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name in WGSL.
    pub name: &'static str,
    /// The element type.
    pub dtype: DType,
    /// How it is used.
    pub access: Access,
    /// Whether its elements are atomics in WGSL.
    pub atomic: bool,
}

/// One word of the uniform `params`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// The name in WGSL.
    pub name: Cow<'static, str>,
    /// The type of the word.
    pub dtype: DType,
}

/// Data of a generated kernel for its CPU form.
pub type KernelData = dyn Any + Send + Sync;

/// The CPU form of a kernel.
type NativeFn = Arc<dyn Fn(&NativeCall<'_>) + Send + Sync>;
/// The matrix product that a launch with these parameter words computes.
type MatrixProductFn = Arc<dyn Fn(&[u32]) -> Option<MatrixProduct> + Send + Sync>;
/// Operations of a launch with these parameter words.
type FlopsFn = Arc<dyn Fn(&[u32]) -> f64 + Send + Sync>;
/// Maximum loop iterations of an invocation, with these parameter words and workgroups.
type LoopsFn = Arc<dyn Fn(&[u32], u32) -> u64 + Send + Sync>;

/// A product that a library of a device may compute instead of a kernel:
/// `y[m, n] = a[m, k]·b[k, n]`, plus a row `bias` and a matrix `residual` if the kernel has
/// bindings of these names. Bindings 0 to 2 are a, b and y; `y` and `residual` are row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatrixProduct {
    /// m, n and k.
    pub sizes: [usize; 3],
    /// Elements from row to row of a, and from column to column.
    pub a_strides: [usize; 2],
    /// The same of b.
    pub b_strides: [usize; 2],
}

/// Loop iterations of one invocation, for [`KernelBuilder::loops`]: `groups` workgroups or
/// invocations stride over `items`, with `each` iterations of inner loops for each.
pub fn loops_over(items: u64, groups: u32, each: u64) -> u64 {
    items
        .div_ceil(u64::from(groups.max(1)))
        .saturating_mul(each.saturating_add(1))
        .saturating_add(1)
}

/// Loop iterations of one workgroup per row with `passes` passes over its columns.
pub(crate) fn loops_over_rows([rows, cols]: [usize; 2], groups: u32, passes: u64) -> u64 {
    loops_over(
        rows as u64,
        groups,
        passes * ((cols as u64).div_ceil(u64::from(WORKGROUP)) + 1) + 20,
    )
}

/// Device code with everything needed to launch it anywhere.
pub struct Kernel {
    name: String,
    revision: Option<&'static str>,
    native_hash: OnceLock<ContentHash>,
    bindings: Vec<Binding>,
    /// A bit for each declared binding that the kernel has.
    present: u32,
    params: Vec<Param>,
    wgsl: CodeText,
    /// Where the body starts in it.
    body_start: usize,
    native: NativeFn,
    data: Option<Arc<KernelData>>,
    #[cfg_attr(
        not(feature = "cuda"),
        allow(dead_code, reason = "only libraries of CUDA compute products")
    )]
    product: Option<MatrixProductFn>,
    flops: Option<FlopsFn>,
    /// The binding of which a launch reads only so many words.
    read_words: Option<(&'static str, FlopsFn)>,
    loops: Option<LoopsFn>,
    /// Parameters that count elements of bindings, and these bindings.
    counts: Vec<[usize; 2]>,
    is_trusted: bool,
    workgroup: [u32; 3],
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name)
            .field("hash", &self.hash())
            .finish()
    }
}

impl Kernel {
    /// Starts the definition of a kernel whose arguments are known at run time only;
    /// [`kernel_arguments!`](crate::kernel_arguments) declares those of others.
    ///
    /// # Example
    /// ```
    /// use tectum::{DType, Kernel};
    /// let double = Kernel::define("double_f32")
    ///     .read("x", DType::F32)
    ///     .write("y", DType::F32)
    ///     .param("n", DType::U32)
    ///     .body("@compute @workgroup_size(256)
    ///            fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    ///                if id.x < params.n { y[id.x] = 2.0 * x[id.x]; }
    ///            }")
    ///     .native(|call| {
    ///         let (x, y) = (call.read::<f32>(0), call.write::<f32>(1));
    ///         for (y, x) in y.iter_mut().zip(x) { *y = 2.0 * x; }
    ///     })?;
    /// assert_eq!(double.bindings().len(), 2);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn define(name: impl Into<String>) -> KernelBuilder {
        KernelBuilder::new(name, Declaration::default())
    }

    /// The stable name used in logs, receipts, benchmarks and tests.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The storage bindings in order.
    pub fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The parameter words in order.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Whether a binding holds elements of a type.
    pub fn uses(&self, dtype: DType) -> bool {
        self.bindings.iter().any(|binding| binding.dtype == dtype)
    }

    /// The whole WGSL module.
    pub fn wgsl(&self) -> &str {
        self.wgsl.as_str()
    }

    /// The WGSL module as a key of caches.
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    pub(crate) fn code_text(&self) -> &CodeText {
        &self.wgsl
    }

    /// Identifies the native code, named in receipts of runs on the CPU: a hash of the kernel's
    /// definition, of the revision of this crate and of that of the crate that defines the kernel.
    /// Where no revision was given, the hash of the running program is used.
    pub fn native_hash(&self) -> ContentHash {
        *self.native_hash.get_or_init(|| {
            let mut hasher = ContentHasher::default();
            let program = self.revision.is_none().then(|| program_hash().to_string());
            let own = self.revision.or(program.as_deref()).unwrap_or_default();
            for part in [
                "native",
                REVISION,
                own,
                &self.name,
                &self.wgsl.hash().to_string(),
            ] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
            hasher.finish()
        })
    }

    /// Runs the CPU form. A panic is a bug in it: of a trusted kernel one of ours, and else its
    /// author's, who gets an error. Its bindings may be half written then.
    pub(crate) fn run_native(&self, call: &NativeCall<'_>) -> Result<()> {
        if self.is_trusted {
            (self.native)(call);
            return Ok(());
        }
        let run = AssertUnwindSafe(|| (self.native)(call));
        catch_unwind(run).map_err(|panic| {
            let message = (panic.downcast_ref::<String>().map(String::as_str))
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            Error::invalid(format!("its native twin panicked: {message}"))
        })
    }

    /// The views of the kernel's bindings among those of the declared ones.
    pub(crate) fn bound_views(&self, declared: Vec<Option<View>>) -> Result<Vec<View>> {
        let is_given = declared.iter().enumerate().fold(0, |bits, (index, view)| {
            bits | (u32::from(view.is_some()) << index)
        });
        if is_given == self.present {
            return Ok(declared.into_iter().flatten().collect());
        }
        let names: Vec<_> = self.bindings.iter().map(|binding| binding.name).collect();
        Err(Error::invalid(format!(
            "the views of optional bindings are not those of the kernel, which has {}",
            names.join(", ")
        )))
    }

    /// Whether a declared binding is one of the kernel's.
    fn has_binding(&self, declared: usize) -> bool {
        self.present & (1 << declared) != 0
    }

    /// Data for the CPU form of a generated kernel.
    pub fn data(&self) -> Option<&KernelData> {
        self.data.as_deref()
    }

    /// The matrix product that a launch with these parameter words computes, if a library may
    /// compute it.
    #[cfg(feature = "cuda")]
    pub(crate) fn matrix_product(&self, params: &[u32]) -> Option<MatrixProduct> {
        self.product.as_ref().and_then(|product| product(params))
    }

    /// Operations of a launch with these parameter words, if the definition gives them.
    pub fn flops(&self, params: &[u32]) -> Option<f64> {
        self.flops.as_ref().map(|flops| flops(params))
    }

    /// Words of 32 bits that a launch with these parameter words reads of a binding, if the
    /// definition says that it may be fewer than it binds.
    pub fn read_words(&self, binding: &str, params: &[u32]) -> Option<f64> {
        let (name, words) = self.read_words.as_ref()?;
        (*name == binding).then(|| words(params))
    }

    /// Maximum loop iterations of one invocation, if the definition states it.
    pub fn loops(&self, params: &[u32], groups: u32) -> Option<u64> {
        self.loops.as_ref().map(|loops| loops(params, groups))
    }

    /// Whether the device code has loops.
    pub(crate) fn has_loops(&self) -> Result<bool> {
        let (module, _) = self.module()?;
        Ok(workgroups::has_loops(&module))
    }

    /// Refuses a launch whose parameters count more elements than its views have.
    pub(crate) fn check_counts(&self, views: &[View], params: &[u32]) -> Result<()> {
        let beyond =
            |&&[param, binding]: &&[usize; 2]| params[param] as usize > views[binding].len();
        let Some(&[param, binding]) = self.counts.iter().find(beyond) else {
            return Ok(());
        };
        Err(Error::invalid(format!(
            "parameter {} is {}, and binding {} has {} elements",
            self.params[param].name,
            params[param],
            self.bindings[binding].name,
            views[binding].len()
        )))
    }

    /// Whether device code is compiled without checks of its indices.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Invocations in a workgroup.
    pub fn workgroup(&self) -> u32 {
        self.workgroup.iter().product()
    }

    /// The workgroup size of the entry point.
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.workgroup
    }

    /// The content hash of the WGSL module, named in receipts.
    pub fn hash(&self) -> ContentHash {
        self.wgsl.hash()
    }

    /// Parses and validates the module.
    ///
    /// # Errors
    /// `Invalid`, naming the kernel, line and column, for a module that is not valid WGSL.
    pub fn module(&self) -> Result<(naga::Module, naga::valid::ModuleInfo)> {
        let fault = |error: &(dyn std::error::Error + 'static),
                     location: Option<naga::SourceLocation>| {
            let causes = std::iter::successors(Some(error), |error| error.source())
                .map(ToString::to_string)
                .collect::<Vec<_>>();
            let place =
                location.map_or_else(String::new, |location| self.place(location.offset as usize));
            Error::invalid(format!(
                "kernel {}{place}: {}",
                self.name,
                causes.join(": ")
            ))
        };
        let module = naga::front::wgsl::parse_str(self.wgsl())
            .map_err(|error| fault(&error, error.location(self.wgsl())))?;
        let capabilities = if self.uses(DType::F64) {
            naga::valid::Capabilities::FLOAT64 | naga::valid::Capabilities::SHADER_INT64
        } else {
            naga::valid::Capabilities::empty()
        };
        let mut validator =
            naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities);
        let info = validator
            .validate(&module)
            .map_err(|error| fault(error.as_inner(), error.location(self.wgsl())))?;
        Ok((module, info))
    }

    /// Refuses a module that no GPU would compile, or one without an entry point. Returns the
    /// workgroup size.
    fn check(&self) -> Result<[u32; 3]> {
        let (module, _) = self.module()?;
        let entry = workgroups::entry_point(&module).ok_or_else(|| {
            Error::invalid(format!(
                "kernel {}: its body has no entry point `@compute @workgroup_size(…) fn main`",
                self.name
            ))
        })?;
        let size = entry.workgroup_size;
        let is_known = entry.workgroup_size_overrides.is_none();
        if is_known
            && size
                .iter()
                .try_fold(1u32, |a, b| a.checked_mul(*b))
                .is_some()
        {
            return Ok(size);
        }
        Err(Error::invalid(format!(
            "kernel {}: the workgroup size of its entry point is not a constant of 32 bits",
            self.name
        )))
    }

    /// Line and column of a byte of the module, counted in the body if it is there; with the line.
    fn place(&self, offset: usize) -> String {
        let (start, of) = if offset < self.body_start {
            (0, "module")
        } else {
            (self.body_start, "body")
        };
        let (before, after) = self.wgsl()[start..].split_at(offset - start);
        let (line, column) = (
            before.matches('\n').count() + 1,
            before
                .chars()
                .rev()
                .take_while(|other| *other != '\n')
                .count()
                + 1,
        );
        let text = before
            .lines()
            .last()
            .filter(|_| column > 1)
            .unwrap_or_default()
            .to_owned()
            + after.lines().next().unwrap_or_default();
        format!(
            ", line {line}, column {column} of its {of}, `{}`",
            text.trim()
        )
    }
}

/// A kernel under definition, with arguments `A`, whose bindings of `T` are of this element type.
pub struct KernelBuilder<A = (), T = u32> {
    name: String,
    revision: Option<&'static str>,
    preludes: Vec<Prelude>,
    declaration: Declaration,
    present: u32,
    body: String,
    data: Option<Arc<KernelData>>,
    product: Option<MatrixProductFn>,
    flops: Option<FlopsFn>,
    read_words: Option<(&'static str, FlopsFn)>,
    loops: Option<LoopsFn>,
    counts: Vec<(&'static str, Vec<String>)>,
    is_trusted: bool,
    is_parsed_by_tests: bool,
    arguments: PhantomData<fn(A, T)>,
}

impl<A, T> std::fmt::Debug for KernelBuilder<A, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelBuilder")
            .field("name", &self.name)
            .field("declaration", &self.declaration)
            .finish_non_exhaustive()
    }
}

/// Arguments that are known at run time only.
impl KernelBuilder {
    /// Adds a read-only binding.
    #[must_use]
    pub fn read(self, name: &'static str, dtype: DType) -> Self {
        self.binding("read", name, dtype)
    }

    /// Adds a binding that is written only.
    #[must_use]
    pub fn write(self, name: &'static str, dtype: DType) -> Self {
        self.binding("write", name, dtype)
    }

    /// Adds a binding that is read and written in place.
    #[must_use]
    pub fn read_write(self, name: &'static str, dtype: DType) -> Self {
        self.binding("read_write", name, dtype)
    }

    /// Adds a binding of integers that invocations change in place by atomic operations.
    #[must_use]
    pub fn atomic(self, name: &'static str, dtype: DType) -> Self {
        self.binding("atomic", name, dtype)
    }

    fn binding(mut self, kind: &str, name: &'static str, dtype: DType) -> Self {
        self.declaration.binding(kind, name, dtype);
        self
    }

    /// Adds a word to the uniform `params`.
    #[must_use]
    pub fn param(mut self, name: &'static str, dtype: DType) -> Self {
        self.declaration.params.push(Param {
            name: name.into(),
            dtype,
        });
        self
    }

    /// Sets how many operations a launch with these parameter words takes, for routing; a
    /// multiply-add counts two. Without it a launch counts one for every word that it binds.
    #[must_use]
    pub fn flops(mut self, flops: fn(&[u32]) -> f64) -> Self {
        self.flops = Some(Arc::new(flops));
        self
    }

    /// Sets the maximum iterations of all loops of one invocation together, for these parameter
    /// words and workgroups, for devices that end longer loops
    /// ([`DeviceLimits::max_loop_iterations`](crate::device::DeviceLimits::max_loop_iterations)): a
    /// launch that may exceed the limit is rejected there, and without it any launch of a kernel
    /// with loops. An iteration that only detects the loop's end counts too.
    #[must_use]
    pub fn loops(mut self, loops: fn(&[u32], u32) -> u64) -> Self {
        self.loops = Some(Arc::new(loops));
        self
    }

    /// Finishes the definition with the CPU form.
    ///
    /// # Errors
    /// `Invalid` for more than eight bindings or 64 parameters, none of either, or no written
    /// binding; for WGSL that is not valid, on every device, naming line and column of the body;
    /// for a body without an entry point `main`.
    /// # Cost
    /// Parses and validates the WGSL, which takes about a millisecond: define a kernel once.
    pub fn native(self, native: fn(&NativeCall<'_>)) -> Result<Arc<Kernel>> {
        self.finish(Arc::new(native))
    }
}

/// Arguments that [`kernel_arguments!`](crate::kernel_arguments) declares.
impl<A: KernelArguments, T: Element> KernelBuilder<A, T> {
    #[doc(hidden)]
    pub fn with_arguments(name: impl Into<String>) -> Self {
        let mut declaration = Declaration::default();
        A::declare::<T>(&mut declaration);
        Self::new(name, declaration)
    }

    /// Includes an optional binding.
    ///
    /// # Panics
    /// If no optional binding has this name: a mistake in the definition.
    #[must_use]
    pub fn with(mut self, binding: &str) -> Self {
        let optional = |(index, declared): (usize, &Binding)| {
            (declared.name == binding && self.declaration.is_optional[index]).then_some(index)
        };
        let index = self
            .declaration
            .bindings
            .iter()
            .enumerate()
            .find_map(optional);
        self.present |= 1
            << index
                .unwrap_or_else(|| panic!("kernel {}: no optional binding {binding}", self.name));
        self
    }

    /// Sets how many operations a launch with these parameters takes, for routing; a multiply-add
    /// counts two. Without it a launch counts one for every word that it binds.
    #[must_use]
    pub fn flops(mut self, flops: fn(A::Parameters) -> f64) -> Self {
        self.flops = Some(Arc::new(move |mut words| flops(A::parameters(&mut words))));
        self
    }

    /// Sets how many words of 32 bits a launch with these parameters reads of a binding, for
    /// routing: a table is bound whole, and only some of its rows are read. Without it a launch
    /// reads all words that it binds.
    #[must_use]
    pub fn read_words(mut self, binding: &'static str, words: fn(A::Parameters) -> f64) -> Self {
        self.read_words = Some((
            binding,
            Arc::new(move |mut params| words(A::parameters(&mut params))),
        ));
        self
    }

    /// Sets the maximum iterations of all loops of one invocation together, for these parameters
    /// and workgroups, for devices that end longer loops
    /// ([`DeviceLimits::max_loop_iterations`](crate::device::DeviceLimits::max_loop_iterations)): a
    /// launch that may exceed the limit is rejected there, and without it any launch of a kernel
    /// with loops. An iteration that only detects the loop's end counts too.
    #[must_use]
    pub fn loops(mut self, loops: fn(A::Parameters, u32) -> u64) -> Self {
        self.loops = Some(Arc::new(move |mut words, groups| {
            loops(A::parameters(&mut words), groups)
        }));
        self
    }

    /// Sets the product that a library may compute instead of a launch with these parameters.
    pub(crate) fn matrix_product(
        mut self,
        product: fn(A::Parameters) -> Option<MatrixProduct>,
    ) -> Self {
        self.product = Some(Arc::new(move |mut words| {
            product(A::parameters(&mut words))
        }));
        self
    }

    /// Finishes the definition with the CPU form, a function or a closure that captures nothing.
    ///
    /// # Errors
    /// `Invalid` for more than eight bindings or 64 parameters, or no written binding; for WGSL
    /// that is not valid, on every device, naming line and column of the body; for a body without
    /// an entry point `main`.
    /// # Cost
    /// Parses and validates the WGSL, which takes about a millisecond: define a kernel once.
    pub fn native<N>(self, native: N) -> Result<TypedKernel<A>>
    where
        N: for<'a> Fn(&NativeCall<'a>, A::Slices<'a, T>) + Send + Sync + 'static,
    {
        const { assert!(size_of::<N>() == 0, "a native twin captures nothing") };
        let kernel = self.finish(Arc::new(move |call| {
            native(call, A::slices::<T>(&mut NativeArguments::new(call)))
        }))?;
        Ok(TypedKernel {
            kernel,
            arguments: PhantomData,
        })
    }
}

impl<A, T> KernelBuilder<A, T> {
    fn new(name: impl Into<String>, declaration: Declaration) -> Self {
        Self {
            name: name.into(),
            revision: None,
            preludes: Vec::new(),
            declaration,
            present: 0,
            body: String::new(),
            data: None,
            product: None,
            flops: None,
            read_words: None,
            loops: None,
            counts: Vec::new(),
            is_trusted: false,
            is_parsed_by_tests: false,
            arguments: PhantomData,
        }
    }

    /// Puts a prelude before the body.
    #[must_use]
    pub fn prelude(mut self, prelude: Prelude) -> Self {
        if matches!(
            prelude,
            Prelude::Activation | Prelude::Functions | Prelude::Tree
        ) {
            self = self.prelude(Prelude::Math);
        }
        if !self.preludes.contains(&prelude) {
            self.preludes.push(prelude);
        }
        self
    }

    /// Sets the body: helper functions and one entry point named `main`.
    #[must_use]
    pub fn body(mut self, wgsl: impl Into<String>) -> Self {
        self.body = wgsl.into();
        self
    }

    /// States that a parameter counts elements of bindings. A launch in which one of them has fewer
    /// is refused when it is recorded, on every device; without it an access beyond a binding is
    /// clamped by GPUs, and the CPU form decides.
    ///
    /// The definition is refused if the kernel has no such parameter of type `u32` or `usize`, or
    /// no such binding.
    #[must_use]
    pub fn counts(mut self, parameter: &'static str, bindings: &[&str]) -> Self {
        let bindings = bindings.iter().map(|name| (*name).to_owned()).collect();
        self.counts.push((parameter, bindings));
        self
    }

    /// Sets the revision of the sources that the CPU form is compiled from, for
    /// [`Kernel::native_hash`]: with `source_revision` in the build script,
    /// `env!("TECTUM_REVISION")`.
    #[must_use]
    pub fn revision(mut self, revision: &'static str) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Sets the data for the CPU form of a generated kernel, which reads it with
    /// [`NativeCall::data`].
    #[must_use]
    pub fn data(mut self, data: Arc<KernelData>) -> Self {
        self.data = Some(data);
        self
    }

    /// Leaves out the check of the WGSL at the definition: tests of the crate that defines the
    /// kernel make it, and the start of a program does not pay for it. Devices check the WGSL
    /// before they compile it, as that of any kernel.
    #[doc(hidden)]
    #[must_use]
    pub fn parsed_by_tests(mut self) -> Self {
        self.is_parsed_by_tests = true;
        self
    }

    /// Compiles the device code without checks of its indices. With the checks no access leaves its
    /// binding: an index beyond the last element is clamped to it, or the access does nothing,
    /// depending on the device's API.
    ///
    /// # Safety
    /// In every launch that is recorded, with these parameters and views, each index of the body is
    /// within its array, and each loop terminates. Code that has the [`TypedKernel`] can record any
    /// launch: only code that upholds this may have it.
    #[must_use]
    pub unsafe fn trusted(mut self) -> Self {
        self.is_trusted = true;
        self
    }

    /// Without the types of its arguments, so that the rest is compiled once.
    fn finish(self, native: NativeFn) -> Result<Arc<Kernel>> {
        KernelBuilder::<(), ()> {
            name: self.name,
            revision: self.revision,
            preludes: self.preludes,
            declaration: self.declaration,
            present: self.present,
            body: self.body,
            data: self.data,
            product: self.product,
            flops: self.flops,
            read_words: self.read_words,
            loops: self.loops,
            counts: self.counts,
            is_trusted: self.is_trusted,
            is_parsed_by_tests: self.is_parsed_by_tests,
            arguments: PhantomData,
        }
        .finish_untyped(native)
    }
}

impl KernelBuilder<(), ()> {
    fn finish_untyped(self, native: NativeFn) -> Result<Arc<Kernel>> {
        let Self {
            name,
            revision,
            preludes,
            declaration,
            present,
            body,
            data,
            product,
            flops,
            read_words,
            loops,
            counts,
            is_trusted,
            is_parsed_by_tests,
            ..
        } = self;
        let Declaration {
            bindings,
            is_optional,
            params,
        } = declaration;
        let is_required = |index: usize| index >= u32::BITS as usize || !is_optional[index];
        let is_present = |index: usize| is_required(index) || present & (1 << index) != 0;
        let bindings: Vec<Binding> = bindings
            .into_iter()
            .enumerate()
            .filter_map(|(index, binding)| is_present(index).then_some(binding))
            .collect();
        let written = bindings.iter().filter(|b| b.access.writes()).count();
        if bindings.len() > MAX_BINDINGS
            || written == 0
            || params.is_empty()
            || params.len() > MAX_PARAMS
        {
            return Err(Error::invalid(format!(
                "kernel {name}: {} bindings ({written} written) and {} params; needs at most {MAX_BINDINGS} bindings, one of them written, and 1 to {MAX_PARAMS} params",
                bindings.len(),
                params.len(),
            )));
        }
        let present = (0..is_optional.len())
            .filter(|&index| is_present(index))
            .fold(0, |bits, index| bits | 1 << index);
        let counts = count_places(&name, &counts, (&bindings, &params))?;
        let workgroup = workgroups::literal_workgroup_size(&body).unwrap_or([WORKGROUP, 1, 1]);
        let mut kernel = Kernel {
            name,
            revision,
            native_hash: OnceLock::new(),
            bindings,
            present,
            params,
            wgsl: CodeText::new(""),
            body_start: 0,
            native,
            data,
            product,
            flops,
            read_words,
            loops,
            counts,
            is_trusted,
            workgroup,
        };
        kernel.assemble(&preludes, &body);
        if !is_parsed_by_tests {
            let workgroup = kernel.check()?;
            if workgroup != kernel.workgroup {
                kernel.workgroup = workgroup;
                kernel.assemble(&preludes, &body);
            }
        }
        Ok(Arc::new(kernel))
    }
}

/// The places of parameters that count elements of bindings, and of these bindings.
fn count_places(
    kernel: &str,
    counts: &[(&'static str, Vec<String>)],
    (bindings, params): (&[Binding], &[Param]),
) -> Result<Vec<[usize; 2]>> {
    let mut places = Vec::new();
    for (name, counted) in counts {
        let is_count = |param: &Param| param.name == *name && param.dtype == DType::U32;
        let param = params.iter().position(is_count).ok_or_else(|| {
            Error::invalid(format!(
                "kernel {kernel}: counts of {name}: the kernel has no such parameter of type u32"
            ))
        })?;
        for binding in counted {
            let known = bindings.iter().position(|known| known.name == binding);
            let place = known.ok_or_else(|| {
                Error::invalid(format!(
                    "kernel {kernel}: {name} counts {binding}: the kernel has no such binding"
                ))
            })?;
            places.push([param, place]);
        }
    }
    Ok(places)
}

impl Kernel {
    /// Writes the whole module: declarations, preludes, body.
    fn assemble(&mut self, preludes: &[Prelude], body: &str) {
        // Caches identify a kernel by its text, which therefore states how it is compiled.
        let checks = if self.is_trusted {
            ""
        } else {
            ", indices checked"
        };
        let mut text = format!("// kernel {}{checks}\nstruct Params {{\n", self.name);
        for param in &self.params {
            let _ = writeln!(text, "    {}: {},", param.name, param.dtype.wgsl());
        }
        text.push_str("}\n@group(0) @binding(0) var<uniform> params: Params;\n");
        for (index, binding) in self.bindings.iter().enumerate() {
            let access = if binding.access.writes() {
                "read_write"
            } else {
                "read"
            };
            let element = binding.dtype.wgsl();
            let element = if binding.atomic {
                format!("atomic<{element}>")
            } else {
                element.to_owned()
            };
            let _ = writeln!(
                text,
                "@group(0) @binding({}) var<storage, {access}> {}: array<{element}>;",
                index + 1,
                binding.name
            );
        }
        let double = self.uses(DType::F64);
        for prelude in preludes {
            if *prelude == Prelude::LinearIndex {
                let size = self.workgroup();
                let _ = writeln!(text, "const TECTUM_WORKGROUP: u32 = {size}u;");
            }
            prelude
                .wgsl(double)
                .into_iter()
                .for_each(|part| text.push_str(part));
        }
        self.body_start = text.len();
        text.push_str(body);
        self.wgsl = CodeText::new(text);
    }
}

/// The hash of the running program; of empty content if it cannot be read.
fn program_hash() -> ContentHash {
    static HASH: LazyLock<ContentHash> = LazyLock::new(|| {
        let program = std::env::current_exe()
            .and_then(std::fs::read)
            .unwrap_or_default();
        ContentHash::of(&program)
    });
    *HASH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_of_too_many_bindings_or_none_is_refused() {
        for count in [0, 9, 32, 33, 40] {
            let builder = (0..count)
                .fold(Kernel::define("many"), |builder, _| {
                    builder.write("y", DType::F32)
                })
                .param("n", DType::U32);
            let error = builder
                .body("")
                .native(|_| {})
                .expect_err("a mistake")
                .to_string();
            assert!(
                error.contains(&format!("kernel many: {count} bindings ({count} written)")),
                "{error}"
            );
        }
    }

    /// Each mistake in a body of its own, and how the message continues after the kernel's name.
    #[test]
    fn invalid_wgsl_is_refused_with_its_line() {
        let cases = [
            (
                "@compute @workgroup_size(64)\nfn main() {\n    y[0] = ;\n}",
                ", line 3, column 12 of its body, `y[0] = ;`: expected expression, found \";\"",
            ),
            (
                "fn main() { y[0] = z; }",
                ", line 1, column 20 of its body, `fn main() { y[0] = z; }`: no definition in scope for identifier: `z`",
            ),
            (
                "\n  /* é */ @compute @workgroup_size(64) fn main() { y[0] = q; }",
                ", line 2, column 59 of its body, `/* é */ @compute",
            ),
            (
                "@compute @workgroup_size(64)\nfn main() {\n    let a = y[0] + vec2<f32>(1.0, 2.0)[7];\n}",
                ", line 3, column 20 of its body",
            ),
            (
                "@compute @workgroup_size(64)\nfn main() { if (params.n == 1u) { workgroupBarrier(); } y[0] = f(); }\nfn f() -> f32 { }",
                ", line 3, column 1 of its body, `fn f() -> f32 { }`: ",
            ),
            (
                "@compute @workgroup_size(64) fn other() { y[0] = 1.0; }",
                ": its body has no entry point `@compute @workgroup_size(…) fn main`",
            ),
            ("", ": its body has no entry point"),
        ];
        let define = |body: &str| {
            Kernel::define("wrong")
                .write("y", DType::F32)
                .param("n", DType::U32)
                .body(body)
        };
        for (body, message) in cases {
            let error = define(body).native(|_| {}).expect_err(body);
            assert_eq!(error.kind(), crate::ErrorKind::Invalid);
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("kernel wrong{message}")),
                "{error}"
            );
            assert!(
                define(body).parsed_by_tests().native(|_| {}).is_ok(),
                "the definition itself is well formed"
            );
        }
        // A name that WGSL reserves is a mistake outside the body.
        let error = Kernel::define("wrong")
            .write("loop", DType::F32)
            .param("n", DType::U32)
            .body("@compute @workgroup_size(64) fn main() {}")
            .native(|_| {});
        let error = error.expect_err("reserved").to_string();
        assert!(
            error.starts_with("kernel wrong, line 6, column 48 of its module, `@group(0)"),
            "{error}"
        );
    }

    #[test]
    fn native_code_is_identified_by_definition_and_revision() {
        let defined = |name: &str, revision: Option<&'static str>, body: &str| {
            let builder = Kernel::define(name)
                .write("y", DType::F32)
                .param("n", DType::U32)
                .body(body);
            let builder = revision.into_iter().fold(builder, KernelBuilder::revision);
            builder.native(|_| {}).expect("well formed").native_hash()
        };
        let body = "@compute @workgroup_size(256) fn main() {}";
        let hashes = [
            defined("a", Some("1"), body),
            defined("a", Some("2"), body),
            defined("b", Some("1"), body),
            defined("a", Some("1"), "@compute @workgroup_size(64) fn main() {}"),
            defined("a", None, body),
        ];
        assert_eq!(
            hashes
                .iter()
                .collect::<std::collections::BTreeSet<_>>()
                .len(),
            hashes.len(),
            "each part matters"
        );
        assert_eq!(
            (defined("a", Some("1"), body), defined("a", None, body)),
            (hashes[0], hashes[4])
        );
        let own = crate::operation::kernels()
            .into_iter()
            .next()
            .expect("a kernel");
        assert!(
            own.revision == Some(REVISION) && REVISION.len() == 64,
            "built-in kernels name their sources"
        );
    }
}
