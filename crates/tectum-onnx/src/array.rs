//! Tensors on the host.

use std::sync::Arc;

use rten_onnx::onnx::{DataLocation, DataType, TensorProto};
use tectum::{Error, Result};

use crate::element::ElementType;

/// A row-major tensor on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    element: ElementType,
    dims: Vec<usize>,
    data: Data,
}

/// The numbers: f32 as they are, the others in f64, where integers are exact to 2⁵³.
#[derive(Debug, Clone, PartialEq)]
enum Data {
    Single(Arc<[f32]>),
    Wide(Arc<[f64]>),
}

impl Array {
    /// Makes a tensor of f32.
    ///
    /// # Errors
    /// `Invalid` if `data` does not fill the shape.
    pub fn floats(dims: &[usize], data: Vec<f32>) -> Result<Self> {
        Self::checked(ElementType::F32, dims, data.len())?;
        Ok(Self {
            element: ElementType::F32,
            dims: dims.to_vec(),
            data: Data::Single(data.into()),
        })
    }

    /// Makes a tensor of any type; each number is rounded to it.
    ///
    /// # Errors
    /// `Invalid` if `data` does not fill the shape.
    pub fn new(element: ElementType, dims: &[usize], data: Vec<f64>) -> Result<Self> {
        Self::checked(element, dims, data.len())?;
        Ok(Self::wide(element, dims, data))
    }

    fn checked(element: ElementType, dims: &[usize], len: usize) -> Result<()> {
        let needed = dims
            .iter()
            .try_fold(1usize, |product, dim| product.checked_mul(*dim));
        if needed == Some(len) {
            Ok(())
        } else {
            Err(Error::invalid(format!(
                "{element} {dims:?} with {len} elements"
            )))
        }
    }

    /// From data that fills the shape.
    pub(crate) fn wide(element: ElementType, dims: &[usize], data: Vec<f64>) -> Self {
        let data = match element {
            ElementType::F32 => Data::Single(data.into_iter().map(|value| value as f32).collect()),
            _ => Data::Wide(data.into_iter().map(|value| element.round(value)).collect()),
        };
        Self {
            element,
            dims: dims.to_vec(),
            data,
        }
    }

    /// Of one number, as often as `len`, which is what the shape holds.
    pub(crate) fn filled(element: ElementType, dims: &[usize], number: f64, len: usize) -> Self {
        let data = match element {
            ElementType::F32 => Data::Single(std::iter::repeat_n(number as f32, len).collect()),
            _ => Data::Wide(std::iter::repeat_n(element.round(number), len).collect()),
        };
        Self {
            element,
            dims: dims.to_vec(),
            data,
        }
    }

    /// A vector of 64-bit integers.
    pub(crate) fn int64s(values: &[i64]) -> Self {
        Self::wide(
            ElementType::I64,
            &[values.len()],
            values.iter().map(|value| *value as f64).collect(),
        )
    }

    /// A scalar.
    pub(crate) fn scalar(element: ElementType, value: f64) -> Self {
        Self::wide(element, &[], vec![value])
    }

    /// Its type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Its shape.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match &self.data {
            Data::Single(data) => data.len(),
            Data::Wide(data) => data.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers, in f64.
    pub fn to_f64(&self) -> Vec<f64> {
        match &self.data {
            Data::Single(data) => data.iter().map(|value| f64::from(*value)).collect(),
            Data::Wide(data) => data.to_vec(),
        }
    }

    /// The numbers rounded to f32.
    pub fn to_f32(&self) -> Vec<f32> {
        match &self.data {
            Data::Single(data) => data.to_vec(),
            Data::Wide(data) => data.iter().map(|value| *value as f32).collect(),
        }
    }

    /// The numbers as integers, truncated.
    pub(crate) fn to_i64(&self) -> Vec<i64> {
        self.to_f64()
            .into_iter()
            .map(|value| value as i64)
            .collect()
    }

    /// The integers of a device: none if one is beyond 32 bits. The bounds of 64-bit types, which
    /// mean "to the end", become those of 32.
    pub(crate) fn to_i32(&self) -> Option<Vec<i32>> {
        let word = |value: f64| match value {
            value if value >= i64::MAX as f64 => Some(i32::MAX),
            value if value <= i64::MIN as f64 => Some(i32::MIN),
            value => (value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX))
                .then_some(value as i32),
        };
        self.to_f64().into_iter().map(word).collect()
    }

    /// The same numbers in another shape of as many elements.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Self {
        Self {
            dims: dims.to_vec(),
            ..self.clone()
        }
    }

    /// The same numbers as another type.
    pub(crate) fn cast(&self, element: ElementType) -> Self {
        if element == self.element {
            self.clone()
        } else {
            Self::wide(element, &self.dims, self.to_f64())
        }
    }

    /// The places `indices` of the middle one of three axes of these sizes.
    pub(crate) fn taken(
        &self,
        dims: &[usize],
        [outer, size, inner]: [usize; 3],
        indices: &[usize],
    ) -> Self {
        fn rows<T: Copy>(
            data: &[T],
            [outer, size, inner]: [usize; 3],
            indices: &[usize],
        ) -> Arc<[T]> {
            let row = |outer: usize, index: usize| &data[(outer * size + index) * inner..][..inner];
            (0..outer)
                .flat_map(|outer| indices.iter().flat_map(move |index| row(outer, *index)))
                .copied()
                .collect()
        }
        let data = match &self.data {
            Data::Single(data) => Data::Single(rows(data, [outer, size, inner], indices)),
            Data::Wide(data) => Data::Wide(rows(data, [outer, size, inner], indices)),
        };
        Self {
            element: self.element,
            dims: dims.to_vec(),
            data,
        }
    }

    /// Tensors of one type one after another along an axis, `dims` all together.
    pub(crate) fn joined(parts: &[&Self], dims: &[usize], axis: usize) -> Self {
        let outer: usize = dims[..axis].iter().product();
        let chunk = |part: &Self| part.dims[axis..].iter().product::<usize>();
        let mut data = Vec::with_capacity(dims.iter().product());
        let sources: Vec<(Vec<f64>, usize)> = parts
            .iter()
            .map(|part| (part.to_f64(), chunk(part)))
            .collect();
        for row in 0..outer {
            sources.iter().for_each(|(source, chunk)| {
                data.extend_from_slice(&source[row * chunk..][..*chunk])
            });
        }
        Self::wide(
            parts.first().map_or(ElementType::F32, |part| part.element),
            dims,
            data,
        )
    }

    /// The address of the numbers, which reports shared tensors.
    pub(crate) fn address(&self) -> usize {
        match &self.data {
            Data::Single(data) => data.as_ptr() as usize,
            Data::Wide(data) => data.as_ptr() as usize,
        }
    }

    /// Makes a tensor of the bytes of its elements, little-endian, as NumPy's files have them.
    ///
    /// # Errors
    /// `Invalid` if the bytes do not fill the shape.
    pub fn from_le_bytes(element: ElementType, dims: &[usize], bytes: &[u8]) -> Result<Self> {
        let len = bytes.len() / element.bytes();
        if !bytes.len().is_multiple_of(element.bytes()) {
            return Err(Error::invalid(format!(
                "{} bytes of {element}",
                bytes.len()
            )));
        }
        Self::checked(element, dims, len)?;
        Ok(Self {
            element,
            dims: dims.to_vec(),
            data: decode(element, bytes),
        })
    }

    /// Reads a tensor on its own, as ONNX writes it in files `.pb`.
    ///
    /// # Errors
    /// `Data` for bytes that are no tensor, `Unsupported` for a type without meaning here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::read(&crate::reader::tensor(bytes)?, &mut |_| {
            Err(Error::unsupported("a tensor with external data"))
        })
    }

    /// Reads a tensor of a file.
    ///
    /// # Errors
    /// `Unsupported` for a type without meaning here, `Data` for sizes that the data does not fill.
    pub(crate) fn read(proto: &TensorProto, external: &mut External<'_>) -> Result<Self> {
        let name = proto.name.as_deref().unwrap_or_default();
        let code = proto.data_type.unwrap_or(DataType(0));
        let element = ElementType::of(code).ok_or_else(|| {
            Error::unsupported(format!("tensor {name:?}: elements of type {code}"))
        })?;
        let fault = |message: String| Error::data(format!("tensor {name:?}: {message}"));
        let dims = proto
            .dims
            .iter()
            .map(|dim| usize::try_from(*dim).ok())
            .collect::<Option<Vec<_>>>();
        let dims = dims.ok_or_else(|| fault(format!("negative sizes {:?}", proto.dims)))?;
        let product = dims
            .iter()
            .try_fold(1usize, |product, dim| product.checked_mul((*dim).max(1)));
        product
            .filter(|product| *product <= u32::MAX as usize)
            .ok_or_else(|| fault(format!("{dims:?} are too many elements")))?;
        let len: usize = dims.iter().product();
        let from_bytes = |bytes: &[u8]| match bytes.len() == len * element.bytes() {
            true => Ok(decode(element, bytes)),
            false => Err(fault(format!(
                "{} bytes for {dims:?} of {element}",
                bytes.len()
            ))),
        };
        let data = if proto
            .data_location
            .is_some_and(|location| location.0 == DataLocation::EXTERNAL.0)
        {
            external(proto).and_then(|bytes| from_bytes(&bytes))?
        } else if let Some(raw) = &proto.raw_data {
            from_bytes(&raw.borrow())?
        } else if len == 0 {
            Data::Wide(Arc::from([]))
        } else {
            typed_fields(element, proto)
        };
        let array = Self {
            element,
            dims,
            data,
        };
        if array.len() == len {
            Ok(array)
        } else {
            Err(fault(format!(
                "{} elements for {:?}",
                array.len(),
                array.dims
            )))
        }
    }
}

/// Reads the bytes of a tensor from a file next to the model.
pub(crate) type External<'a> = dyn FnMut(&TensorProto) -> Result<Vec<u8>> + 'a;

/// Little-endian numbers.
fn decode(element: ElementType, bytes: &[u8]) -> Data {
    fn wide<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Data {
        let (chunks, _) = bytes.as_chunks::<N>();
        Data::Wide(chunks.iter().map(|chunk| number(*chunk)).collect())
    }
    match element {
        ElementType::F32 => Data::Single(
            bytes
                .as_chunks::<4>()
                .0
                .iter()
                .map(|chunk| f32::from_le_bytes(*chunk))
                .collect(),
        ),
        ElementType::F64 => wide(bytes, f64::from_le_bytes),
        ElementType::F16 => wide(bytes, |chunk| half::f16::from_le_bytes(chunk).to_f64()),
        ElementType::Bf16 => wide(bytes, |chunk| half::bf16::from_le_bytes(chunk).to_f64()),
        ElementType::I8 => wide(bytes, |chunk| i8::from_le_bytes(chunk).into()),
        ElementType::I16 => wide(bytes, |chunk| i16::from_le_bytes(chunk).into()),
        ElementType::I32 => wide(bytes, |chunk| i32::from_le_bytes(chunk).into()),
        ElementType::I64 => wide(bytes, |chunk| i64::from_le_bytes(chunk) as f64),
        ElementType::U8 => wide(bytes, |chunk| u8::from_le_bytes(chunk).into()),
        ElementType::U16 => wide(bytes, |chunk| u16::from_le_bytes(chunk).into()),
        ElementType::U32 => wide(bytes, |chunk| u32::from_le_bytes(chunk).into()),
        ElementType::U64 => wide(bytes, |chunk| u64::from_le_bytes(chunk) as f64),
        ElementType::Bool => wide(bytes, |[byte]| f64::from(u8::from(byte != 0))),
    }
}

/// Numbers in the field of their type.
fn typed_fields(element: ElementType, proto: &TensorProto) -> Data {
    let words = || proto.int32_data.iter();
    match element {
        ElementType::F32 => Data::Single(proto.float_data.iter().copied().collect()),
        ElementType::F64 => Data::Wide(proto.double_data.iter().copied().collect()),
        ElementType::F16 => Data::Wide(
            words()
                .map(|word| half::f16::from_bits(*word as u16).to_f64())
                .collect(),
        ),
        ElementType::Bf16 => Data::Wide(
            words()
                .map(|word| half::bf16::from_bits(*word as u16).to_f64())
                .collect(),
        ),
        ElementType::I64 => {
            Data::Wide(proto.int64_data.iter().map(|value| *value as f64).collect())
        }
        _ => Data::Wide(
            words()
                .map(|word| element.round(f64::from(*word)))
                .collect(),
        ),
    }
}
