//! Cases that evaluate one expression on many inputs: one invocation per group of lanes, each lane
//! one row of inputs.
//!
//! The expression names its operands `x`, `y`, `z` and `u`; they are scalars for width 1, else
//! vectors whose components are neighbouring inputs. `x0`, `y0` … are the operands' first
//! components: mixed scalar and vector forms use them.

use half::f16;

use crate::case::{Case, Element, Features, Near, Number, Output, Scope, Wanted, to_f16};

/// A WGSL scalar type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub name: &'static str,
    /// The type in buffers.
    storage: &'static str,
    element: Element,
    features: Features,
}

impl Type {
    pub const fn features(self) -> Features {
        self.features
    }
}

const fn plain(name: &'static str, element: Element, features: Features) -> Type {
    Type {
        name,
        storage: name,
        element,
        features,
    }
}

/// A host type that represents a WGSL scalar type.
pub trait Scalar: Copy + Send + Sync + 'static {
    const TYPE: Type;
    fn bytes(self) -> Vec<u8>;
    /// Whether WGSL determines arithmetic on it: no infinity, no NaN, no subnormal.
    fn ordinary(self) -> bool {
        true
    }
}

macro_rules! scalar {
    ($($type:ty: $name:literal, $features:expr;)*) => { $(impl Scalar for $type {
        const TYPE: Type = plain($name, <$type as Number>::ELEMENT, $features);
        fn bytes(self) -> Vec<u8> { self.to_ne_bytes().to_vec() }
    })* };
    (float $($type:ty: $name:literal, $features:expr;)*) => { $(impl Scalar for $type {
        const TYPE: Type = plain($name, <$type as Number>::ELEMENT, $features);
        fn bytes(self) -> Vec<u8> { self.to_ne_bytes().to_vec() }
        fn ordinary(self) -> bool {
            matches!(self.classify(), std::num::FpCategory::Normal | std::num::FpCategory::Zero)
        }
    })* };
}
scalar! {
    i32: "i32", Features::NONE;
    u32: "u32", Features::NONE;
    i64: "i64", Features::INT64;
    u64: "u64", Features::INT64;
}
scalar! { float
    f16: "f16", Features::F16;
    f32: "f32", Features::NONE;
    f64: "f64", Features::F64;
}

impl Scalar for bool {
    const TYPE: Type = Type {
        name: "bool",
        storage: "u32",
        element: Element::U32,
        features: Features::NONE,
    };
    fn bytes(self) -> Vec<u8> {
        u32::from(self).to_ne_bytes().to_vec()
    }
}

/// A floating-point type.
pub trait Float: Scalar + Number + PartialOrd {
    fn of(value: f64) -> Self;
    fn wide(self) -> f64;
}

impl Float for f16 {
    fn of(value: f64) -> f16 {
        to_f16(value)
    }
    fn wide(self) -> f64 {
        self.to_f64()
    }
}
impl Float for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn wide(self) -> f64 {
        self.into()
    }
}
impl Float for f64 {
    fn of(value: f64) -> f64 {
        value
    }
    fn wide(self) -> f64 {
        self
    }
}

/// How far a result may be from the exact one.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// The nearest representable number.
    Nearest,
    /// Units in the last place of the exact result.
    Ulp(f64),
    /// Units in the last place, by the first operand.
    UlpBy(fn(f64) -> f64),
    Absolute(f64),
    /// The sum of an absolute distance and a relative one.
    Mixed {
        absolute: f64,
        relative: f64,
    },
    /// A distance by the operands and the exact result.
    By(fn(&[f64], f64) -> f64),
}

impl Bound {
    fn distance(self, operands: &[f64], value: f64, element: Element) -> f64 {
        match self {
            Bound::Nearest => 0.0,
            Bound::Ulp(n) => n * element.ulp(value),
            Bound::UlpBy(n) => n(operands[0]) * element.ulp(value),
            Bound::Absolute(distance) => distance,
            Bound::Mixed { absolute, relative } => absolute + relative * value.abs(),
            Bound::By(distance) => distance(operands, value),
        }
    }
}

/// The bounds of a function on the two classes of target.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub ptx: Bound,
    pub wgpu: Bound,
}

impl Bounds {
    /// The same bound everywhere.
    pub const fn same(bound: Bound) -> Bounds {
        Bounds {
            ptx: bound,
            wgpu: bound,
        }
    }

    /// Rounds correctly in PTX; within `wgpu` elsewhere.
    pub const fn rounded_in_ptx(wgpu: Bound) -> Bounds {
        Bounds {
            ptx: Bound::Nearest,
            wgpu,
        }
    }

    pub fn near(self, element: Element, operands: &[f64], value: f64) -> Near {
        let distance = |bound: Bound| bound.distance(operands, value, element);
        Near {
            value,
            ptx: distance(self.ptx),
            wgpu: distance(self.wgpu),
        }
    }
}

/// The evaluation of a case of lanes.
#[derive(Debug, Clone)]
pub struct Lanes<'a> {
    pub name: String,
    pub expression: &'a str,
    /// Components of the operands, 1 to 4.
    pub width: usize,
    /// Whether the result is one scalar for all lanes of a group.
    pub reduces: bool,
    /// Functions and the like that the expression uses.
    pub helpers: &'a str,
}

impl<'a> Lanes<'a> {
    pub fn new(name: impl Into<String>, width: usize, expression: &'a str) -> Lanes<'a> {
        Lanes {
            name: name.into(),
            expression,
            width,
            reduces: false,
            helpers: "",
        }
    }

    pub fn reducing(self) -> Lanes<'a> {
        Lanes {
            reduces: true,
            ..self
        }
    }

    pub fn helpers(self, helpers: &'a str) -> Lanes<'a> {
        Lanes { helpers, ..self }
    }

    /// One operand, an exact result per lane.
    pub fn exact1<A: Scalar, O: Scalar>(&self, xs: &[A], f: impl Fn(A) -> O) -> Case {
        let xs = self.padded(xs);
        let wanted = xs.iter().map(|&x| f(x)).collect::<Vec<_>>();
        self.case(&[column(&xs)], O::TYPE, exact(&wanted))
    }

    /// Two operands, an exact result per lane.
    pub fn exact2<A: Scalar, B: Scalar, O: Scalar>(
        &self,
        rows: &[(A, B)],
        f: impl Fn(A, B) -> O,
    ) -> Case {
        let rows = self.padded(rows);
        let wanted = rows.iter().map(|&(x, y)| f(x, y)).collect::<Vec<_>>();
        let (xs, ys): (Vec<A>, Vec<B>) = rows.into_iter().unzip();
        self.case(&[column(&xs), column(&ys)], O::TYPE, exact(&wanted))
    }

    /// Three operands, an exact result per lane.
    pub fn exact3<A: Scalar, B: Scalar, C: Scalar, O: Scalar>(
        &self,
        rows: &[(A, B, C)],
        f: impl Fn(A, B, C) -> O,
    ) -> Case {
        let rows = self.padded(rows);
        let wanted = rows.iter().map(|&(x, y, z)| f(x, y, z)).collect::<Vec<_>>();
        let xs = rows.iter().map(|row| row.0).collect::<Vec<_>>();
        let ys = rows.iter().map(|row| row.1).collect::<Vec<_>>();
        let zs = rows.iter().map(|row| row.2).collect::<Vec<_>>();
        self.case(
            &[column(&xs), column(&ys), column(&zs)],
            O::TYPE,
            exact(&wanted),
        )
    }

    /// Rows of operands of one type, an exact result per group of lanes; `f` receives the group's
    /// rows.
    pub fn exact_groups<A: Scalar, O: Scalar>(
        &self,
        rows: &[Vec<A>],
        f: impl Fn(&[Vec<A>]) -> Vec<O>,
    ) -> Case {
        let rows = self.padded(rows);
        let wanted = rows.chunks(self.width).flat_map(f).collect::<Vec<_>>();
        self.case(&columns(&rows), O::TYPE, exact(&wanted))
    }

    /// Rows of operands of one float type, a result within bounds per lane.
    pub fn near<T: Float>(
        &self,
        rows: &[Vec<T>],
        bounds: Bounds,
        f: impl Fn(&[f64]) -> f64,
    ) -> Case {
        let rows = self.padded(rows);
        let wanted = rows.iter().map(|row| {
            let operands = row.iter().map(|x| x.wide()).collect::<Vec<_>>();
            bounds.near(T::ELEMENT, &operands, f(&operands))
        });
        self.case(&columns(&rows), T::TYPE, Wanted::Near(wanted.collect()))
    }

    /// One operand of any type, a float result within bounds per lane; `f` returns the nearest
    /// representable number.
    pub fn near1<A: Scalar, T: Float>(&self, xs: &[A], bounds: Bounds, f: impl Fn(A) -> T) -> Case {
        let xs = self.padded(xs);
        let wanted = xs
            .iter()
            .map(|&x| bounds.near(T::ELEMENT, &[], f(x).wide()))
            .collect();
        self.case(&[column(&xs)], T::TYPE, Wanted::Near(wanted))
    }

    /// Rows of operands of one float type, results within bounds per group of lanes; `f` receives
    /// the group's rows and returns one value per lane, or one in total if the expression reduces.
    pub fn near_groups<T: Float>(
        &self,
        rows: &[Vec<T>],
        bounds: Bounds,
        f: impl Fn(&[Vec<f64>]) -> Vec<f64>,
    ) -> Case {
        let rows = self.padded(rows);
        let wanted = rows.chunks(self.width).flat_map(|group| {
            let group = group
                .iter()
                .map(|row| row.iter().map(|x| x.wide()).collect())
                .collect::<Vec<Vec<f64>>>();
            f(&group)
                .into_iter()
                .map(|value| bounds.near(T::ELEMENT, &group[0], value))
                .collect::<Vec<_>>()
        });
        let wanted = wanted.collect();
        self.case(&columns(&rows), T::TYPE, Wanted::Near(wanted))
    }

    /// Repeats rows until groups are full and buffer sizes are multiples of four bytes.
    fn padded<R: Clone>(&self, rows: &[R]) -> Vec<R> {
        let count = rows.len().next_multiple_of(2 * self.width);
        rows.iter().cycle().take(count).cloned().collect()
    }

    fn case(&self, operands: &[Column], output: Type, wanted: Wanted) -> Case {
        let count = match &wanted {
            Wanted::Bits(bytes) => bytes.len() / output.element.bytes(),
            Wanted::Near(values) => values.len(),
        };
        let invocations = if self.reduces {
            count
        } else {
            count / self.width
        };
        let mut case =
            Case::new(&self.name, self.source(operands, output)).features(output.features);
        for operand in operands {
            case = case.features(operand.ty.features).read(&operand.bytes);
        }
        let buffer = operands.len();
        case = case.buffer(
            crate::case::BufferKind::ReadWrite,
            vec![0; count * output.element.bytes()],
        );
        case.expected = crate::case::Expected::Fixed(vec![Output {
            buffer,
            element: output.element,
            wanted,
        }]);
        case.groups(invocations.div_ceil(64) as u32, 1, 1)
    }

    fn source(&self, operands: &[Column], output: Type) -> String {
        let width = self.width;
        let mut source = String::new();
        if operands.iter().any(|operand| operand.ty.name == "f16") || output.name == "f16" {
            source.push_str("enable f16;\n");
        }
        for (binding, Column { ty, .. }) in operands.iter().enumerate() {
            source.push_str(&format!(
                "@group(0) @binding({binding}) var<storage, read> in{binding}: array<{}>;\n",
                ty.storage
            ));
        }
        let binding = operands.len();
        source.push_str(&format!(
            "@group(0) @binding({binding}) var<storage, read_write> out: array<{}>;\n",
            output.storage
        ));
        source.push_str(self.helpers);
        source.push_str("\n@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n");
        let each = if self.reduces { 1 } else { width };
        source.push_str(&format!(
            "    let o = id.x * {each}u;\n    if (o >= arrayLength(&out)) {{ return; }}\n"
        ));
        source.push_str(&format!("    let i = id.x * {width}u;\n"));
        for (binding, (name, Column { ty, .. })) in
            ["x", "y", "z", "u"].iter().zip(operands).enumerate()
        {
            let lane = |lane: usize| match ty.name {
                "bool" => format!("in{binding}[i + {lane}u] != 0u"),
                _ => format!("in{binding}[i + {lane}u]"),
            };
            source.push_str(&format!("    let {name}0 = {};\n", lane(0)));
            let all = (0..width).map(lane).collect::<Vec<_>>().join(", ");
            match width {
                1 => source.push_str(&format!("    let {name} = {name}0;\n")),
                _ => source.push_str(&format!(
                    "    let {name} = vec{width}<{}>({all});\n",
                    ty.name
                )),
            }
        }
        source.push_str(&format!("    let result = {};\n", self.expression));
        for lane in 0..each {
            let value = if each == 1 {
                "result".to_owned()
            } else {
                format!("result[{lane}]")
            };
            let value = if output.name == "bool" {
                format!("select(0u, 1u, {value})")
            } else {
                value
            };
            source.push_str(&format!("    out[o + {lane}u] = {value};\n"));
        }
        source.push_str("}\n");
        source
    }
}

/// The values of one operand.
struct Column {
    ty: Type,
    bytes: Vec<u8>,
}

fn column<T: Scalar>(values: &[T]) -> Column {
    Column {
        ty: T::TYPE,
        bytes: values.iter().flat_map(|value| value.bytes()).collect(),
    }
}

fn columns<T: Scalar>(rows: &[Vec<T>]) -> Vec<Column> {
    let operands = rows.first().map_or(0, Vec::len);
    (0..operands)
        .map(|operand| column(&rows.iter().map(|row| row[operand]).collect::<Vec<_>>()))
        .collect()
}

fn exact<T: Scalar>(values: &[T]) -> Wanted {
    Wanted::Bits(values.iter().flat_map(|value| value.bytes()).collect())
}

/// All pairs.
pub fn pairs<A: Copy, B: Copy>(xs: &[A], ys: &[B]) -> Vec<(A, B)> {
    xs.iter()
        .flat_map(|&x| ys.iter().map(move |&y| (x, y)))
        .collect()
}

/// A case of the rows on which WGSL determines the result, and one of all rows for PTX, where IEEE
/// 754 does.
pub fn float1<T: Float, O: Scalar>(lanes: &Lanes<'_>, pool: &[T], f: impl Fn(T) -> O) -> [Case; 2] {
    let ordinary = pool
        .iter()
        .copied()
        .filter(|&x| x.ordinary() && f(x).ordinary())
        .collect::<Vec<_>>();
    let all = Lanes {
        name: format!("{}/ieee", lanes.name),
        ..lanes.clone()
    };
    [
        lanes.exact1(&ordinary, &f),
        all.exact1(pool, &f).scope(Scope::Ptx),
    ]
}

/// As [`float1`], of two operands.
pub fn float2<T: Float, O: Scalar>(
    lanes: &Lanes<'_>,
    pool: &[T],
    f: impl Fn(T, T) -> O,
) -> [Case; 2] {
    let rows = pairs(pool, pool);
    let determined = |&(x, y): &(T, T)| x.ordinary() && y.ordinary() && f(x, y).ordinary();
    let ordinary = rows.iter().copied().filter(determined).collect::<Vec<_>>();
    let all = Lanes {
        name: format!("{}/ieee", lanes.name),
        ..lanes.clone()
    };
    [
        lanes.exact2(&ordinary, &f),
        all.exact2(&rows, &f).scope(Scope::Ptx),
    ]
}
