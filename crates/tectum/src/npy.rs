//! Arrays in files of NumPy's `.npy` format, versions 1 to 3: little-endian numbers in C order.

use std::path::Path;

use crate::error::{Error, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Headers are padded so that the numbers begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// An array's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The element type as NumPy writes it: `<f4`, `|u1` …
    pub descr: String,
    /// The sizes, slowest first.
    pub shape: Vec<u64>,
}

/// Reads a file: its header and the bytes of its elements.
///
/// # Errors
/// `Io`, or `Data` as [`parse`], naming the file.
pub fn read(path: &Path) -> Result<(Header, Vec<u8>)> {
    let mut bytes = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
    let (header, start) =
        parse(&bytes).map_err(|fault| Error::data(format!("{}: {fault}", path.display())))?;
    bytes.drain(..start);
    Ok((header, bytes))
}

/// The header of a file's bytes, and where its elements begin.
///
/// # Errors
/// The reason, for other files and other layouts than little-endian numbers in C order.
pub fn parse(bytes: &[u8]) -> std::result::Result<(Header, usize), String> {
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or("not a .npy file: it does not begin with \\x93NUMPY")?;
    let (start, length) = match *rest {
        [1, _, low, high, ..] => (10, usize::from(u16::from_le_bytes([low, high]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([a, b, c, d]) as usize),
        [version, ..] => {
            return Err(format!(
                "version {version} of the .npy form; 1 to 3 can be read"
            ));
        }
        [] => return Err("the file ends in the header".to_owned()),
    };
    let text = bytes
        .get(start..start + length)
        .ok_or("the file ends in the header")?;
    let text = std::str::from_utf8(text).map_err(|_| "the header is no text")?;
    let header = dictionary(text)?;
    let elements = header
        .shape
        .iter()
        .try_fold(1u64, |count, size| count.checked_mul(*size));
    let needed = elements.and_then(|count| count.checked_mul(item_bytes(&header.descr)?));
    let found = (bytes.len() - start - length) as u64;
    if needed != Some(found) {
        return Err(format!(
            "{found} bytes of elements, shape {:?} of {} needs {}",
            header.shape,
            header.descr,
            needed.unwrap_or(u64::MAX)
        ));
    }
    Ok((header, start + length))
}

/// Parses the header's dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn dictionary(text: &str) -> std::result::Result<Header, String> {
    let value = |key: &str| {
        let (_, rest) = text
            .split_once(&format!("'{key}'"))
            .ok_or_else(|| format!("the header has no {key}"))?;
        Ok::<&str, String>(
            rest.trim_start()
                .strip_prefix(':')
                .unwrap_or(rest)
                .trim_start(),
        )
    };
    let descr = value("descr")?
        .strip_prefix('\'')
        .and_then(|rest| rest.split_once('\''))
        .map(|(descr, _)| descr);
    let descr = descr.ok_or("elements of several fields cannot be read")?;
    let (order, size) = descr.split_at(
        descr
            .char_indices()
            .nth(1)
            .map_or(descr.len(), |(index, _)| index),
    );
    if order == ">" {
        return Err(format!(
            "elements {descr} are big-endian; little-endian is needed"
        ));
    }
    let shape = value("shape")?
        .strip_prefix('(')
        .and_then(|rest| rest.split_once(')'))
        .map(|(shape, _)| shape);
    let sizes = shape
        .into_iter()
        .flat_map(|shape| shape.split(','))
        .map(str::trim)
        .filter(|size| !size.is_empty());
    let sizes: std::result::Result<Vec<u64>, _> = sizes
        .map(|size| size.trim_end_matches('L').parse())
        .collect();
    let shape = sizes
        .ok()
        .filter(|_| shape.is_some())
        .ok_or("the header's shape is no tuple of sizes")?;
    if value("fortran_order")?.starts_with("True")
        && shape.iter().filter(|size| **size > 1).count() > 1
    {
        return Err(
            "elements are in Fortran order; numpy.ascontiguousarray puts them in C order"
                .to_owned(),
        );
    }
    // One byte has no byte order, and '=' is the native order.
    let order = if size.ends_with('1') && size.len() == 2 {
        "|"
    } else {
        "<"
    };
    let descr = format!("{order}{size}");
    item_bytes(&descr).ok_or_else(|| format!("elements {descr} are no numbers"))?;
    Ok(Header { descr, shape })
}

/// Bytes of an element: the number after the kind.
fn item_bytes(descr: &str) -> Option<u64> {
    let size = descr.get(1..)?.strip_prefix(['b', 'i', 'u', 'f', 'c'])?;
    size.parse().ok().filter(|size| (1..=16).contains(size))
}

/// The header bytes of a file.
pub fn head(header: &Header) -> Vec<u8> {
    head_of(&format!("'{}'", header.descr), &header.shape)
}

/// The header bytes of a file of records: names and element types of the fields, and the number of
/// records.
pub fn head_of_records(fields: &[(&str, &str)], records: u64) -> Vec<u8> {
    let field = |(name, descr): &(&str, &str)| {
        format!(
            "('{}', '{descr}')",
            name.replace('\\', "\\\\").replace('\'', "\\'")
        )
    };
    head_of(
        &format!(
            "[{}]",
            fields.iter().map(field).collect::<Vec<_>>().join(", ")
        ),
        &[records],
    )
}

fn head_of(descr: &str, shape: &[u64]) -> Vec<u8> {
    let sizes = match shape {
        [one] => format!("{one},"),
        several => several
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': ({sizes}), }}");
    let padded = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(ALIGNMENT) - MAGIC.len() - 4;
    text.push_str(&" ".repeat(padded - 1 - text.len()));
    text.push('\n');
    [
        &MAGIC[..],
        &[1, 0],
        &(padded as u16).to_le_bytes(),
        text.as_bytes(),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::{Header, head, head_of_records, parse};

    fn file(dictionary: &str, elements: &[u8]) -> Vec<u8> {
        [
            b"\x93NUMPY\x01\x00",
            &(dictionary.len() as u16).to_le_bytes()[..],
            dictionary.as_bytes(),
            elements,
        ]
        .concat()
    }

    #[test]
    fn what_is_written_is_read_back_and_begins_at_a_multiple_of_64() {
        for shape in [vec![], vec![0], vec![3], vec![2, 3], vec![1_000_000, 1, 20]] {
            let header = Header {
                descr: "<f4".into(),
                shape,
            };
            let mut bytes = head(&header);
            assert_eq!(bytes.len() % 64, 0);
            let start = bytes.len();
            bytes.resize(start + header.shape.iter().product::<u64>() as usize * 4, 0);
            assert_eq!(parse(&bytes), Ok((header, start)));
        }
    }

    #[test]
    fn the_fields_of_records_have_their_names() {
        let bytes = head_of_records(&[("tick", "<u8"), ("it's", "|b1")], 7);
        let expected = "{'descr': [('tick', '<u8'), ('it\\'s', '|b1')], 'fortran_order': False, 'shape': (7,), }";
        assert!(
            bytes.len().is_multiple_of(64)
                && std::str::from_utf8(&bytes[10..]).is_ok_and(|text| text.trim_end() == expected)
        );
    }

    #[test]
    fn other_forms_are_refused_by_what_they_are() {
        let good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
        assert_eq!(
            parse(&file(good, &[0; 16])).map(|(header, _)| header.shape),
            Ok(vec![2, 2])
        );
        let one = "{'shape': (4,), 'fortran_order': True, 'descr': '=i1'}";
        assert_eq!(
            parse(&file(one, &[0; 4])).map(|(header, _)| header.descr),
            Ok("|i1".to_owned())
        );
        let cases: [(Vec<u8>, &str); 9] = [
            (
                file(good, &[0; 15]),
                "15 bytes of elements, shape [2, 2] of <f4 needs 16",
            ),
            (file(&good.replace('<', ">"), &[0; 16]), "big-endian"),
            (
                file(&good.replace("False", "True"), &[0; 16]),
                "Fortran order",
            ),
            (file(&good.replace("<f4", "|O"), &[0; 16]), "are no numbers"),
            (
                file(&good.replace("'<f4'", "[('a', '<f4')]"), &[0; 16]),
                "several fields",
            ),
            (
                file(&good.replace("2, 2", "2, x"), &[0; 16]),
                "no tuple of sizes",
            ),
            (file("{'descr': '<f4'}", &[]), "the header has no shape"),
            (b"\x93NUMPY\x01\x00\xff\xff".to_vec(), "ends in the header"),
            (b"text".to_vec(), "not a .npy file"),
        ];
        for (bytes, expected) in cases {
            let message = parse(&bytes).expect_err(expected);
            assert!(message.contains(expected), "{message}");
        }
    }
}
