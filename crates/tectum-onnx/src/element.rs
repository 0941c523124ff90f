//! Element types of ONNX, and what they are on devices.

use std::fmt;

use rten_onnx::onnx::DataType;
use tectum::DType;

/// The type of a tensor's elements in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64; f32 on devices.
    F64,
    /// IEEE 754 binary16; f32 on devices.
    F16,
    /// The upper half of binary32; f32 on devices.
    Bf16,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits; 32 on devices.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits; i32 on devices.
    U32,
    /// Unsigned, 64 bits; i32 on devices.
    U64,
    /// A truth value: 0 or 1.
    Bool,
}

impl ElementType {
    const ALL: [(ElementType, DataType, &'static str, usize); 13] = [
        (ElementType::F32, DataType::FLOAT, "float32", 4),
        (ElementType::F64, DataType::DOUBLE, "float64", 8),
        (ElementType::F16, DataType::FLOAT16, "float16", 2),
        (ElementType::Bf16, DataType::BFLOAT16, "bfloat16", 2),
        (ElementType::I8, DataType::INT8, "int8", 1),
        (ElementType::I16, DataType::INT16, "int16", 2),
        (ElementType::I32, DataType::INT32, "int32", 4),
        (ElementType::I64, DataType::INT64, "int64", 8),
        (ElementType::U8, DataType::UINT8, "uint8", 1),
        (ElementType::U16, DataType::UINT16, "uint16", 2),
        (ElementType::U32, DataType::UINT32, "uint32", 4),
        (ElementType::U64, DataType::UINT64, "uint64", 8),
        (ElementType::Bool, DataType::BOOL, "bool", 1),
    ];

    fn entry(self) -> (ElementType, DataType, &'static str, usize) {
        Self::ALL
            .into_iter()
            .find(|(element, ..)| *element == self)
            .expect("invariant: the table has every type")
    }

    /// The type of a file's code; none for a type that has no meaning here, such as strings.
    pub(crate) fn of(code: DataType) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known, ..)| known.0 == code.0)
            .map(|(element, ..)| element)
    }

    /// The name that NumPy gives it.
    pub fn name(self) -> &'static str {
        self.entry().2
    }

    /// Bytes of an element in a file.
    pub(crate) fn bytes(self) -> usize {
        self.entry().3
    }

    /// Whether it is a type of floats.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::F16 | Self::Bf16)
    }

    /// Its type on devices.
    pub fn dtype(self) -> DType {
        if self.is_float() {
            DType::F32
        } else {
            DType::I32
        }
    }

    /// The minimum and the maximum of an integer type; none for floats.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        Some(match self {
            Self::I8 => (-0x80, 0x7f),
            Self::I16 => (-0x8000, 0x7fff),
            Self::I32 => (-0x8000_0000, 0x7fff_ffff),
            Self::I64 => (i64::MIN.into(), i64::MAX.into()),
            Self::U8 => (0, 0xff),
            Self::U16 => (0, 0xffff),
            Self::U32 => (0, 0xffff_ffff),
            Self::U64 => (0, u64::MAX.into()),
            Self::Bool => (0, 1),
            Self::F32 | Self::F64 | Self::F16 | Self::Bf16 => return None,
        })
    }

    /// A number as the nearest of this type: floats are rounded, integers wrap as NumPy's, a truth
    /// value is whether it is not zero.
    pub(crate) fn round(self, value: f64) -> f64 {
        match self {
            Self::F32 => f64::from(value as f32),
            Self::F64 => value,
            Self::F16 => half::f16::from_f64(value).to_f64(),
            Self::Bf16 => half::bf16::from_f32(value as f32).to_f64(),
            Self::Bool => f64::from(u8::from(value != 0.0)),
            _ => {
                let (low, high) = self.range().expect("invariant: floats are above");
                let value = value.trunc();
                // The maxima of 64 bits are not exact in f64 and stay where they are.
                if value >= low as f64 && value <= high as f64 {
                    value
                } else {
                    ((value as i128 - low).rem_euclid(high - low + 1) + low) as f64
                }
            }
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
