//! The arrays of a program's buffers: their sources, sizes and destinations.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tectum::file::PartialFile;
use tectum::npy::{self, Header};
use tectum::{Error, Result};
use tectum_programs::{BufferDeclaration, BufferIndex, Program, Type};

use super::ProgramArgs;
use crate::file_ending::{FileEnding, check_writable};

/// One buffer.
#[derive(Debug, Default)]
struct Array {
    /// Contents before the run; empty for a buffer that the program does not read.
    contents: Vec<u8>,
    /// Element type and shape, once known.
    header: Option<Header>,
    bytes: u64,
    input: Option<PathBuf>,
    output: Option<PathBuf>,
}

/// The arrays of a program, by buffer.
#[derive(Debug)]
pub struct Arrays(Vec<Array>);

/// A file that was written.
#[derive(Debug, Serialize)]
pub struct Saved {
    buffer: String,
    file: String,
    descr: String,
    shape: Vec<u64>,
}

/// A result that no file received.
#[derive(Debug, Serialize)]
pub struct Discarded {
    buffer: String,
    shape: Vec<u64>,
}

impl Discarded {
    /// One line.
    pub fn text(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!(
            "{0} [{1}]: no file was named; --out {0}=FILE.npy writes it",
            self.buffer,
            sizes.join(", ")
        )
    }
}

impl Saved {
    /// One line.
    pub fn text(&self) -> String {
        let sizes: Vec<String> = self.shape.iter().map(u64::to_string).collect();
        format!(
            "{}: {} [{}] in {}",
            self.buffer,
            self.descr,
            sizes.join(", "),
            self.file
        )
    }
}

impl Arrays {
    /// The files from which contents were read.
    pub fn files(&self) -> Vec<PathBuf> {
        self.0
            .iter()
            .filter_map(|array| array.input.clone())
            .collect()
    }

    /// Reads the files that the command line names.
    ///
    /// # Errors
    /// A buffer that does not exist, is given twice, is not read or not written, has no contents
    /// although it is only read; a file that is not of the buffer's type.
    pub fn new(program: &Program, args: &ProgramArgs) -> Result<Self> {
        let buffers = program.buffers();
        let mut arrays: Vec<Array> = buffers.iter().map(|_| Array::default()).collect();
        for (index, path) in assigned(
            buffers,
            "--in",
            &args.inputs,
            |buffer| buffer.access.reads(),
            "reads",
        )? {
            let (header, contents) = npy::read(&path)?;
            check_type(&buffers[index], &header, &path)?;
            arrays[index] = Array {
                bytes: contents.len() as u64,
                contents,
                header: Some(header),
                input: Some(path),
                output: None,
            };
        }
        for (index, path) in assigned(
            buffers,
            "--out",
            &args.outputs,
            |buffer| buffer.access.writes(),
            "writes",
        )? {
            if let Some(fault) = FileEnding(&["npy"]).fault(&path) {
                return Err(Error::invalid(format!("--out {fault}")));
            }
            if arrays
                .iter()
                .any(|array| array.output.as_ref() == Some(&path))
            {
                return Err(Error::invalid(format!(
                    "--out {}: two buffers go to this file",
                    path.display()
                )));
            }
            arrays[index].output = Some(path);
        }
        for text in &args.sizes {
            let (index, shape) = sized(buffers, text)?;
            if arrays[index].header.is_some() {
                return Err(Error::invalid(format!(
                    "--size {text}: the shape of buffer {} is known already",
                    buffers[index].name
                )));
            }
            arrays[index].shape(&buffers[index], shape)?;
        }
        match buffers
            .iter()
            .zip(&arrays)
            .find(|(buffer, array)| !buffer.access.writes() && array.input.is_none())
        {
            Some((buffer, _)) => Err(Error::invalid(format!(
                "buffer {} is read and has no contents; --in {}=FILE.npy gives them",
                buffer.name, buffer.name
            ))),
            None => Ok(Self(arrays)),
        }
    }

    /// Checks that every file can be written, before anything is computed.
    ///
    /// # Errors
    /// As [`check_writable`].
    pub fn check_outputs(&self) -> Result<()> {
        self.0
            .iter()
            .filter_map(|array| array.output.as_deref())
            .try_for_each(|path| check_writable(path).map_err(|error| error.at("--out")))
    }

    /// Bytes of each buffer, when all are known.
    pub fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|array| array.bytes).collect()
    }

    /// The shape of each buffer in its own elements, where it is known.
    pub fn shapes(&self, program: &Program) -> Vec<Option<Vec<u64>>> {
        let shape = |(array, buffer): (&Array, &BufferDeclaration)| {
            let (header, elements) = (array.header.as_ref()?, array.bytes / buffer.ty.bytes());
            // A buffer of u8 is raw bytes of any array.
            Some(if header.shape.iter().product::<u64>() == elements {
                header.shape.clone()
            } else {
                vec![elements]
            })
        };
        self.0.iter().zip(program.buffers()).map(shape).collect()
    }

    /// Gives every buffer without a shape its shape.
    ///
    /// # Errors
    /// More bytes than can be counted.
    pub fn complete(&mut self, program: &Program, shapes: Vec<Vec<u64>>) -> Result<()> {
        let open = self
            .0
            .iter_mut()
            .zip(program.buffers())
            .zip(shapes)
            .filter(|((array, _), _)| array.header.is_none());
        open.into_iter()
            .try_for_each(|((array, buffer), shape)| array.shape(buffer, shape))
    }

    /// The full contents of each buffer before the run.
    pub fn filled(&self) -> Vec<Vec<u8>> {
        let filled = |array: &Array| {
            if array.contents.is_empty() {
                vec![0; array.bytes as usize]
            } else {
                array.contents.clone()
            }
        };
        self.0.iter().map(filled).collect()
    }

    /// The contents before the run of each buffer that the program reads; empty for others.
    pub fn contents(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|array| array.contents.as_slice())
    }

    /// Buffers that the program writes and no file receives, with their shapes.
    pub fn discarded(&self, program: &Program) -> Vec<Discarded> {
        let unsaved = program
            .buffers()
            .iter()
            .zip(&self.0)
            .filter(|(buffer, array)| buffer.access.writes() && array.output.is_none());
        let shape = |array: &Array| {
            array
                .header
                .as_ref()
                .map_or_else(Vec::new, |header| header.shape.clone())
        };
        unsaved
            .map(|(buffer, array)| Discarded {
                buffer: buffer.name.clone(),
                shape: shape(array),
            })
            .collect()
    }

    /// Writes every requested file, then returns all their names.
    ///
    /// # Errors
    /// `Io` naming the file.
    pub fn save<'r>(
        &self,
        program: &Program,
        result: impl Fn(BufferIndex) -> &'r [u8],
    ) -> Result<Vec<Saved>> {
        let mut saved = Vec::new();
        let mut files = Vec::new();
        for (index, (buffer, array)) in program.buffers().iter().zip(&self.0).enumerate() {
            let (Some(path), Some(header)) = (&array.output, &array.header) else {
                continue;
            };
            files.push(written(path, header, result(BufferIndex(index as u32)))?);
            let Header { descr, shape } = header.clone();
            saved.push(Saved {
                buffer: buffer.name.clone(),
                file: path.display().to_string(),
                descr,
                shape,
            });
        }
        files.into_iter().try_for_each(PartialFile::commit)?;
        Ok(saved)
    }
}

impl Array {
    fn shape(&mut self, buffer: &BufferDeclaration, shape: Vec<u64>) -> Result<()> {
        let count = shape
            .iter()
            .try_fold(buffer.ty.bytes(), |bytes, size| bytes.checked_mul(*size))
            .filter(|bytes| *bytes <= u64::from(u32::MAX));
        self.bytes = count.ok_or_else(|| {
            Error::invalid(format!(
                "buffer {}: {shape:?} of {}; a buffer has at most {} bytes",
                buffer.name,
                buffer.ty,
                u32::MAX
            ))
        })?;
        if buffer.access.reads() {
            self.contents = vec![0; self.bytes as usize];
        }
        self.header = Some(Header {
            descr: descr(buffer.ty).to_owned(),
            shape,
        });
        Ok(())
    }
}

/// Writes an array into the partial file of a path.
fn written(path: &Path, header: &Header, elements: &[u8]) -> Result<PartialFile> {
    let mut file = PartialFile::create(path)?;
    let written = file
        .write_all(&npy::head(header))
        .and_then(|()| file.write_all(elements));
    written
        .map_err(|source| Error::io(path.display(), source))
        .map(|()| file)
}

/// The buffers that an option names, or the next suitable ones that it does not name.
fn assigned(
    buffers: &[BufferDeclaration],
    option: &str,
    texts: &[String],
    suits: impl Fn(&BufferDeclaration) -> bool,
    verb: &str,
) -> Result<Vec<(usize, PathBuf)>> {
    let is_name = |text: &str| {
        text.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.')
    };
    let split = |text: &str| {
        text.split_once('=')
            .filter(|(name, _)| is_name(name))
            .map(|(name, path)| (name.to_owned(), path.to_owned()))
    };
    let mut found: Vec<(usize, PathBuf)> = Vec::new();
    for (text, (name, path)) in texts.iter().filter_map(|text| Some((text, split(text)?))) {
        let index =
            index_of(buffers, &name).map_err(|error| error.at(format_args!("{option} {text}")))?;
        if !suits(&buffers[index]) {
            return Err(Error::invalid(format!(
                "{option} {text}: buffer {name} is declared {}; no instruction {verb} it",
                buffers[index].access.name()
            )));
        } else if found.iter().any(|(other, _)| *other == index) {
            return Err(Error::invalid(format!(
                "{option} {text}: buffer {name} is given twice"
            )));
        }
        found.push((index, PathBuf::from(path)));
    }
    let named: Vec<usize> = found.iter().map(|(index, _)| *index).collect();
    let mut next =
        (0..buffers.len()).filter(|index| suits(&buffers[*index]) && !named.contains(index));
    for text in texts.iter().filter(|text| split(text).is_none()) {
        let index = next.next().ok_or_else(|| {
            Error::invalid(format!(
                "{option} {text}: the program {verb} no further buffer"
            ))
        })?;
        found.push((index, PathBuf::from(text)));
    }
    Ok(found)
}

fn index_of(buffers: &[BufferDeclaration], name: &str) -> Result<usize> {
    let names = || {
        buffers
            .iter()
            .map(|buffer| buffer.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    buffers
        .iter()
        .position(|buffer| buffer.name == name)
        .ok_or_else(|| Error::invalid(format!("buffer {name:?} is unknown; declared: {}", names())))
}

/// A buffer and its shape: `y=3` or `y=3,4`.
fn sized(buffers: &[BufferDeclaration], text: &str) -> Result<(usize, Vec<u64>)> {
    let malformed = || Error::invalid(format!("--size {text}: NAME=N or NAME=N,N… is needed"));
    let (name, sizes) = text.split_once('=').ok_or_else(malformed)?;
    let index = index_of(buffers, name).map_err(|error| error.at(format_args!("--size {text}")))?;
    let sizes: std::result::Result<Vec<u64>, _> =
        sizes.split(',').map(|size| size.trim().parse()).collect();
    Ok((index, sizes.map_err(|_| malformed())?))
}

/// NumPy's element type for a buffer's type; bf16, which NumPy lacks, is stored as its bits.
fn descr(ty: Type) -> &'static str {
    match ty {
        Type::I8 => "|i1",
        Type::I16 => "<i2",
        Type::I32 => "<i4",
        Type::I64 => "<i8",
        Type::U8 => "|u1",
        Type::U16 | Type::Bf16 => "<u2",
        Type::U32 => "<u4",
        Type::U64 => "<u8",
        Type::F16 => "<f2",
        Type::F32 => "<f4",
        Type::F64 => "<f8",
    }
}

fn check_type(buffer: &BufferDeclaration, header: &Header, path: &Path) -> Result<()> {
    let needed = descr(buffer.ty);
    // A buffer of u8 is raw bytes.
    if buffer.ty == Type::U8 || header.descr == needed {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "buffer {}: {} has elements {}, {} needs {needed}",
        buffer.name,
        path.display(),
        header.descr,
        buffer.ty
    )))
}
