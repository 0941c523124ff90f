//! Typed arguments of kernels: [`kernel_arguments!`](crate::kernel_arguments) declares bindings and
//! parameters once, for the definition, the native twin and the recorder.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use super::native::NativeCall;
use super::{Access, Binding, Kernel, Param};
use crate::dtype::{DType, Element};
use crate::view::View;

/// What the bindings among a kernel's arguments are.
pub trait Form {
    /// The element type of bindings that are declared with `T`.
    type Generic: Element;
    /// A binding that is only read.
    type Read<E: Element>;
    /// A binding that the kernel changes.
    type Write<E: Element>;
}

/// Bindings as views of a plan, for [`PlanBuilder::launch`](crate::PlanBuilder::launch).
#[derive(Debug, Clone, Copy)]
pub enum Views {}

impl Form for Views {
    type Generic = u32;
    type Read<E: Element> = View;
    type Write<E: Element> = View;
}

/// Bindings as slices of host memory, for the native twin.
#[derive(Debug, Clone, Copy)]
pub struct Slices<'a, T = u32>(PhantomData<&'a T>);

impl<'a, T: Element> Form for Slices<'a, T> {
    type Generic = T;
    type Read<E: Element> = &'a [E];
    type Write<E: Element> = &'a mut [E];
}

/// No bindings, only parameters, for [`KernelBuilder::flops`](super::KernelBuilder::flops) and
/// [`KernelBuilder::loops`](super::KernelBuilder::loops).
#[derive(Debug, Clone, Copy)]
pub enum NoBindings {}

impl Form for NoBindings {
    type Generic = u32;
    type Read<E: Element> = ();
    type Write<E: Element> = ();
}

/// The arguments of a kernel, made by [`kernel_arguments!`](crate::kernel_arguments); as views of a
/// plan.
pub trait KernelArguments: Sized + 'static {
    /// The same as slices of host memory; `T` is the element type of the bindings declared with
    /// `T`.
    type Slices<'a, T: Element>;
    /// The parameters alone.
    type Parameters;

    /// Bindings and parameters in order.
    fn declare<T: Element>(declaration: &mut Declaration);
    /// Takes the arguments of a launch.
    fn slices<'a, T: Element>(arguments: &mut NativeArguments<'_, 'a>) -> Self::Slices<'a, T>;
    /// Reads the parameters of a launch.
    fn parameters(words: &mut &[u32]) -> Self::Parameters;
    /// Gives views and parameters to a launch.
    fn record(self, launch: &mut RecordedArguments);
}

/// A type of a parameter: `usize` (u32 on devices), `u32`, `i32`, `f32`, or an array of one of
/// them.
pub trait Parameter: Sized {
    /// The names and types of its words.
    fn declare(name: &'static str, declaration: &mut Declaration);
    /// Reads it from the first words.
    ///
    /// # Panics
    /// If words are missing: a kernel and its launch agree on their number.
    fn read(words: &mut &[u32]) -> Self;
    /// Appends its words. Returns whether it fits them.
    fn write(self, words: &mut Vec<u32>) -> bool;
}

fn next_word(words: &mut &[u32]) -> u32 {
    *words
        .split_off_first()
        .expect("invariant: a launch has as many parameters as its kernel")
}

macro_rules! parameters {
    ($($type:ty: $dtype:ident, $word:ident => $from:expr, $value:ident => $to:expr, fits $fits:expr;)*) => {$(
        impl Parameter for $type {
            fn declare(name: &'static str, declaration: &mut Declaration) {
                declaration.params.push(Param { name: name.into(), dtype: DType::$dtype });
            }

            fn read(words: &mut &[u32]) -> Self {
                let $word = next_word(words);
                $from
            }

            fn write(self, words: &mut Vec<u32>) -> bool {
                let $value = self;
                words.push($to);
                $fits
            }
        }
    )*};
}

parameters! {
    usize: U32, word => word as usize, value => value as u32, fits u32::try_from(value).is_ok();
    u32: U32, word => word, value => value, fits true;
    i32: I32, word => word as i32, value => value as u32, fits true;
    f32: F32, word => f32::from_bits(word), value => value.to_bits(), fits true;
}

impl<P: Parameter, const N: usize> Parameter for [P; N] {
    fn declare(name: &'static str, declaration: &mut Declaration) {
        let first = declaration.params.len();
        for index in 0..N {
            P::declare(name, declaration);
            declaration.params[first + index].name = Cow::Owned(format!("{name}{index}"));
        }
    }

    fn read(words: &mut &[u32]) -> Self {
        std::array::from_fn(|_| P::read(words))
    }

    fn write(self, words: &mut Vec<u32>) -> bool {
        let fits = self.map(|value| value.write(words));
        fits.iter().all(|fits| *fits)
    }
}

/// The bindings and parameters of a kernel.
#[derive(Debug, Default)]
pub struct Declaration {
    pub(super) bindings: Vec<Binding>,
    /// Whether a kernel may leave out each binding.
    pub(super) is_optional: Vec<bool>,
    pub(super) params: Vec<Param>,
}

impl Declaration {
    /// Adds a binding with its kind: `read`, `write`, `read_write`, `atomic` or `optional`, which
    /// is read.
    pub fn binding(&mut self, kind: &str, name: &'static str, dtype: DType) {
        let access = match kind {
            "read" | "optional" => Access::Read,
            "write" => Access::Write,
            _ => Access::ReadWrite,
        };
        self.bindings.push(Binding {
            name,
            dtype,
            access,
            atomic: kind == "atomic",
        });
        self.is_optional.push(kind == "optional");
    }
}

/// The arguments of a launch on the CPU, taken one after another.
pub struct NativeArguments<'call, 'a> {
    call: &'call NativeCall<'a>,
    /// The next declared binding, and the next that the kernel has.
    next: [usize; 2],
    words: &'a [u32],
}

impl<'call, 'a> NativeArguments<'call, 'a> {
    pub(super) fn new(call: &'call NativeCall<'a>) -> Self {
        Self {
            call,
            next: [0; 2],
            words: call.params(),
        }
    }

    fn take(&mut self) -> usize {
        let [_, index] = self.next;
        self.next = self.next.map(|next| next + 1);
        index
    }

    /// The next binding, which is read.
    pub fn read<E: Element>(&mut self) -> &'a [E] {
        let index = self.take();
        self.call.read(index)
    }

    /// The next binding, if the kernel has it.
    pub fn optional<E: Element>(&mut self) -> Option<&'a [E]> {
        if self.call.has_binding(self.next[0]) {
            return Some(self.read());
        }
        self.next[0] += 1;
        None
    }

    /// The next binding, which is written.
    pub fn write<E: Element>(&mut self) -> &'a mut [E] {
        let index = self.take();
        self.call.write(index)
    }

    /// The next parameter.
    pub fn parameter<P: Parameter>(&mut self) -> P {
        P::read(&mut self.words)
    }
}

/// The views and parameters of a launch, given one after another.
#[derive(Debug, Default)]
pub struct RecordedArguments {
    pub(crate) views: Vec<Option<View>>,
    pub(crate) words: Vec<u32>,
    /// The first parameter beyond 32 bits.
    pub(crate) oversized: Option<&'static str>,
}

impl RecordedArguments {
    /// Adds a view.
    pub fn view(&mut self, view: impl Into<Option<View>>) {
        self.views.push(view.into());
    }

    /// Adds a parameter.
    pub fn parameter<P: Parameter>(&mut self, name: &'static str, value: P) {
        if !value.write(&mut self.words) {
            self.oversized.get_or_insert(name);
        }
    }
}

/// A kernel with the type of its arguments.
pub struct TypedKernel<A> {
    pub(super) kernel: Arc<Kernel>,
    pub(super) arguments: PhantomData<fn(A)>,
}

impl<A> std::fmt::Debug for TypedKernel<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.kernel.fmt(f)
    }
}

impl<A> Deref for TypedKernel<A> {
    type Target = Arc<Kernel>;

    fn deref(&self) -> &Arc<Kernel> {
        &self.kernel
    }
}

/// Declares the arguments of kernels: first the bindings with their kinds and element types, then
/// the parameters.
///
/// A binding is `read`, `write` (every element is written and none read), `read_write`, `atomic`
/// (integers changed by atomic operations), or `optional`: read, in kernels whose builder names it
/// in [`KernelBuilder::with`](crate::KernelBuilder::with). Its element type is an
/// [`Element`](crate::Element), or `T`, which each definition chooses. A parameter is `usize` (u32
/// on devices), `u32`, `i32`, `f32`, or an array of one of them, whose words are numbered.
///
/// The declaration makes a struct with these fields. `define` starts the definition of a kernel,
/// the native twin gets the struct with slices, and
/// [`PlanBuilder::launch`](crate::PlanBuilder::launch) takes it with views: an argument that is
/// missing or misplaced does not compile.
///
/// # Example
/// ```
/// use tectum::{DType, Device, PlanBuilder, kernel::groups_for};
/// tectum::kernel_arguments! {
///     /// `y[i] = factor · x[i]` for `i < n`.
///     struct Scaled { read x: f32, write y: f32; n: usize, factor: f32 }
/// }
/// let scaled = Scaled::define("scaled_f32")
///     .body("@compute @workgroup_size(256)
///            fn main(@builtin(global_invocation_id) id: vec3<u32>) {
///                if id.x < params.n { y[id.x] = params.factor * x[id.x]; }
///            }")
///     .native(|_, Scaled { x, y, n, factor }| y[..n].iter_mut().zip(x).for_each(|(y, x)| *y = factor * x))?;
///
/// let mut plan = PlanBuilder::new("scaled");
/// let (x, y) = (plan.input("x", DType::F32, 3), plan.output("y", DType::F32, 3));
/// plan.launch(&scaled, Scaled { x, y, n: 3, factor: 0.5 }, groups_for(3))?;
/// let mut run = plan.finish()?.compile(&Device::open("cpu")?)?;
/// run.input::<f32>(x).copy_from_slice(&[2.0, 4.0, 8.0]);
/// run.run()?;
/// assert_eq!(run.output::<f32>(y), [1.0, 2.0, 4.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[macro_export]
macro_rules! kernel_arguments {
    ($(
        $(#[$doc:meta])*
        $visibility:vis struct $name:ident { $($kind:ident $binding:ident: $element:tt),+; $($parameter:ident: $type:ty),+ $(,)? }
    )+) => {$(
        $(#[$doc])*
        #[allow(missing_docs, reason = "the fields are the names in device code")]
        #[allow(clippy::min_ident_chars, reason = "the fields are the names in device code")]
        $visibility struct $name<F: $crate::kernel::arguments::Form = $crate::kernel::arguments::Views> {
            $(pub $binding: $crate::kernel_arguments!(@field $kind F $element),)+
            $(pub $parameter: $type,)+
        }

        #[allow(dead_code, reason = "a kernel has one element type, or several")]
        impl $name {
            /// Starts the definition of a kernel with these arguments.
            $visibility fn define(name: impl ::std::convert::Into<::std::string::String>) -> $crate::KernelBuilder<Self> {
                $crate::KernelBuilder::with_arguments(name)
            }

            /// The same for bindings of `T`.
            $visibility fn define_on<T: $crate::Element>(name: impl ::std::convert::Into<::std::string::String>) -> $crate::KernelBuilder<Self, T> {
                $crate::KernelBuilder::with_arguments(name)
            }
        }

        impl $crate::kernel::arguments::KernelArguments for $name {
            type Slices<'a, T: $crate::Element> = $name<$crate::kernel::arguments::Slices<'a, T>>;
            type Parameters = $name<$crate::kernel::arguments::NoBindings>;

            fn declare<T: $crate::Element>(declaration: &mut $crate::kernel::arguments::Declaration) {
                $(declaration.binding(stringify!($kind), stringify!($binding), $crate::kernel_arguments!(@dtype $element));)+
                $(<$type as $crate::kernel::arguments::Parameter>::declare(stringify!($parameter), declaration);)+
            }

            fn slices<'a, T: $crate::Element>(arguments: &mut $crate::kernel::arguments::NativeArguments<'_, 'a>) -> Self::Slices<'a, T> {
                $name {
                    $($binding: $crate::kernel_arguments!(@take $kind arguments),)+
                    $($parameter: arguments.parameter(),)+
                }
            }

            fn parameters(words: &mut &[u32]) -> Self::Parameters {
                $name {
                    $($binding: $crate::kernel_arguments!(@none $kind),)+
                    $($parameter: $crate::kernel::arguments::Parameter::read(words),)+
                }
            }

            fn record(self, launch: &mut $crate::kernel::arguments::RecordedArguments) {
                $(launch.view(self.$binding);)+
                $(launch.parameter(stringify!($parameter), self.$parameter);)+
            }
        }
    )+};
    (@field read $form:ident T) => { $form::Read<$form::Generic> };
    (@field read $form:ident $element:tt) => { $form::Read<$element> };
    (@field optional $form:ident T) => { ::std::option::Option<$form::Read<$form::Generic>> };
    (@field optional $form:ident $element:tt) => { ::std::option::Option<$form::Read<$element>> };
    (@field $kind:ident $form:ident T) => { $form::Write<$form::Generic> };
    (@field $kind:ident $form:ident $element:tt) => { $form::Write<$element> };
    (@dtype $element:tt) => { <$element as $crate::Element>::DTYPE };
    (@take read $arguments:ident) => { $arguments.read() };
    (@take optional $arguments:ident) => { $arguments.optional() };
    (@take $kind:ident $arguments:ident) => { $arguments.write() };
    (@none optional) => { ::std::option::Option::None };
    (@none $kind:ident) => { () };
}
