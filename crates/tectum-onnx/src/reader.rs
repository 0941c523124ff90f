//! Reads a file's bytes with bounded memory and depth, whatever they are.

use rten_onnx::onnx::{ModelProto, TensorProto};
use rten_onnx::protobuf::{
    DecodeMessage, ErrorKind, FieldTypes, OwnedValues, ProtobufError, ReadValue,
};
use tectum::{Error, Result};

/// Graphs within attributes within graphs; each level is several calls deep.
const MAX_DEPTH: usize = 24;

type ReadResult<T> = std::result::Result<T, ProtobufError>;

/// Reads a model.
///
/// # Errors
/// `Data` for bytes that are no model.
pub(crate) fn model(bytes: &[u8]) -> Result<ModelProto> {
    check_messages(Message::Model, bytes)?;
    let model = ModelProto::decode(Slice::new(bytes))
        .map_err(|error| Error::data(format!("not an ONNX model: {error}")))?;
    if model.graph.is_some() {
        Ok(model)
    } else {
        Err(Error::data("not an ONNX model: it has no graph"))
    }
}

/// Reads a tensor on its own, as the test data of ONNX has them.
///
/// # Errors
/// `Data` for bytes that are no tensor.
pub(crate) fn tensor(bytes: &[u8]) -> Result<TensorProto> {
    check_messages(Message::Tensor, bytes)?;
    TensorProto::decode(Slice::new(bytes))
        .map_err(|error| Error::data(format!("not an ONNX tensor: {error}")))
}

/// Reads values from bytes. A length beyond the end is an error before anything is allocated.
struct Slice<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Slice<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    fn take(&mut self, len: usize) -> ReadResult<&'a [u8]> {
        let part = self
            .bytes
            .get(self.position..)
            .and_then(|rest| rest.get(..len));
        let part = part.ok_or_else(|| ProtobufError::new(ErrorKind::Eof))?;
        self.position += len;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> ReadResult<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The next field of a message: its number and, if it has a length, its bytes.
    fn field(&mut self) -> ReadResult<Option<(u64, &'a [u8])>> {
        while self.position < self.bytes.len() {
            let tag = self.read_varint()?;
            match tag & 7 {
                0 => drop(self.read_varint()?),
                1 => drop(self.take(8)?),
                5 => drop(self.take(4)?),
                2 => {
                    let len = usize::try_from(self.read_varint()?).unwrap_or(usize::MAX);
                    return Ok(Some((tag >> 3, self.take(len)?)));
                }
                _ => return Err(ProtobufError::new(ErrorKind::InvalidWireType)),
            }
        }
        Ok(None)
    }
}

impl ReadValue for Slice<'_> {
    type Types = OwnedValues;

    fn read_i32(&mut self) -> ReadResult<i32> {
        self.array().map(i32::from_le_bytes)
    }

    fn read_i64(&mut self) -> ReadResult<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn read_varint(&mut self) -> ReadResult<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::new(ErrorKind::InvalidVarint))
    }

    fn read_bytes(&mut self, len: usize) -> ReadResult<<Self::Types as FieldTypes>::Bytes> {
        self.take(len).map(<[u8]>::to_vec)
    }

    fn read_string(&mut self, len: usize) -> ReadResult<<Self::Types as FieldTypes>::String> {
        String::from_utf8(self.read_bytes(len)?)
            .map_err(|_| ProtobufError::new(ErrorKind::InvalidUtf8))
    }

    fn skip(&mut self, len: usize) -> ReadResult<()> {
        self.take(len).map(drop)
    }

    fn position(&self) -> u64 {
        self.position as u64
    }
}

/// A kind of message of which this crate reads fields.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Value,
    Type,
    Sequence,
    Tensor,
    TensorType,
    Shape,
    /// One without messages in it.
    Plain,
}

impl Message {
    /// The kind of the message in a field, and whether it may contain itself.
    fn field(self, number: u64) -> Option<(Message, bool)> {
        Some(match (self, number) {
            (Message::Model, 7) => (Message::Graph, false),
            (Message::Model, 8 | 14) => (Message::Plain, false),
            (Message::Graph, 1) => (Message::Node, false),
            (Message::Graph, 5) => (Message::Tensor, false),
            (Message::Graph, 11..=13) => (Message::Value, false),
            (Message::Node, 5) => (Message::Attribute, false),
            (Message::Attribute, 5) => (Message::Tensor, false),
            (Message::Attribute, 6) => (Message::Graph, true),
            (Message::Value, 2) => (Message::Type, false),
            (Message::Type, 1) => (Message::TensorType, false),
            (Message::Type, 4) => (Message::Sequence, false),
            (Message::Sequence, 1) => (Message::Type, true),
            (Message::Tensor, 13) => (Message::Plain, false),
            (Message::TensorType, 2) => (Message::Shape, false),
            (Message::Shape, 1) => (Message::Plain, false),
            _ => return None,
        })
    }
}

/// Refuses lengths beyond the end of a message, with which the parser would overflow, and messages
/// nested deeper than a reader's stack should go: the parser itself has no limit.
fn check_messages(first: Message, bytes: &[u8]) -> Result<()> {
    let mut waiting = vec![(first, bytes, 0usize)];
    while let Some((message, bytes, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::data(format!(
                "not an ONNX file: graphs or types are nested more than {MAX_DEPTH} deep"
            )));
        }
        let mut fields = Slice::new(bytes);
        while let Some((number, bytes)) = fields
            .field()
            .map_err(|error| Error::data(format!("not an ONNX file: {error}")))?
        {
            if let Some((inner, is_deeper)) = message.field(number) {
                waiting.push((inner, bytes, depth + usize::from(is_deeper)));
            }
        }
    }
    Ok(())
}
