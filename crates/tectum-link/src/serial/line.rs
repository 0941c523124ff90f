//! Lines of numbers: how they are read and written.

use super::{MAX_END, MAX_NUMBER};

/// Characters of a number that is received, at most: twice what is sent.
const MAX_RECEIVED: usize = 2 * MAX_NUMBER;

/// A line of a machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Line {
    /// One number for each channel, all finite.
    Numbers(Vec<f32>),
    /// The operator allows actions again.
    Arm,
    /// The reason why it is not used.
    Unreadable(String),
}

/// Makes lines of bytes as they arrive. What precedes the first end of a line is the rest of a line
/// whose beginning was not received: it is discarded.
#[derive(Debug)]
pub(crate) struct LineDecoder {
    count: usize,
    has_checksum: bool,
    max_bytes: usize,
    bytes: Vec<u8>,
    /// The rest of the present line is discarded.
    is_skipping: bool,
}

impl LineDecoder {
    /// Reads lines of a count of numbers.
    pub fn new(count: usize, has_checksum: bool) -> Self {
        Self {
            count,
            has_checksum,
            max_bytes: MAX_RECEIVED * count + MAX_END,
            bytes: Vec::new(),
            is_skipping: true,
        }
    }

    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next line; none until more bytes arrive.
    pub fn next_line(&mut self) -> Option<Line> {
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            if !std::mem::take(&mut self.is_skipping) {
                let line = self.decode(&line[..end]);
                return Some(line.unwrap_or_else(Line::Unreadable));
            }
        }
        if self.bytes.len() <= self.max_bytes {
            return None;
        }
        self.bytes.clear();
        let is_first = !std::mem::replace(&mut self.is_skipping, true);
        is_first.then(|| Line::Unreadable(self.too_long()))
    }

    fn too_long(&self) -> String {
        format!("a line has more than {} bytes", self.max_bytes)
    }

    fn decode(&self, line: &[u8]) -> Result<Line, String> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.max_bytes {
            return Err(self.too_long());
        }
        let line = match self.has_checksum {
            true => checked(line)?,
            false => line,
        };
        if line == b"arm" {
            return Ok(Line::Arm);
        }
        let text = std::str::from_utf8(line).map_err(|_| "a line is not ASCII".to_owned())?;
        let numbers = text.split(',').map(|number| {
            let parsed = number.trim_matches(' ').parse::<f32>().ok();
            parsed
                .filter(|number| number.is_finite())
                .ok_or_else(|| format!("a line has {number:?}, which is no finite number"))
        });
        let numbers = numbers.collect::<Result<Vec<f32>, String>>()?;
        match numbers.len() == self.count {
            true => Ok(Line::Numbers(numbers)),
            false => Err(format!(
                "a line has {} numbers, the observation has {}",
                numbers.len(),
                self.count
            )),
        }
    }
}

/// The line before a right checksum.
fn checked(line: &[u8]) -> Result<&[u8], String> {
    let Some((content, [b'*', digits @ ..])) = line.split_at_checked(line.len().saturating_sub(3))
    else {
        return Err("a line has no checksum *HH".to_owned());
    };
    let digit = |digit: u8| (digit as char).to_digit(16);
    let stated = match digits {
        [high, low] => digit(*high).zip(digit(*low)),
        _ => None,
    };
    match stated.map(|(high, low)| 16 * high + low) == Some(u32::from(checksum(content))) {
        true => Ok(content),
        false => Err("a line has another checksum than its bytes".to_owned()),
    }
}

/// The XOR of all bytes, as in NMEA 0183.
fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum ^ byte)
}

/// The line of finite numbers, each with as many digits as identify it.
pub(crate) fn encode(numbers: &[f32], has_checksum: bool) -> String {
    let number = |number: &f32| match number.abs() {
        0.0 | 1e-4..1e7 => number.to_string(),
        _ => format!("{number:e}"),
    };
    let numbers: Vec<String> = numbers.iter().map(number).collect();
    let line = numbers.join(",");
    match has_checksum {
        true => format!("{line}*{:02X}\n", checksum(line.as_bytes())),
        false => format!("{line}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of a text that follows the end of a line, pushed in parts of some bytes.
    fn lines(text: &[u8], count: usize, has_checksum: bool, part: usize) -> Vec<Line> {
        let mut decoder = LineDecoder::new(count, has_checksum);
        decoder.push(b"5,5\n");
        let mut found = Vec::new();
        for bytes in text.chunks(part) {
            decoder.push(bytes);
            found.extend(std::iter::from_fn(|| decoder.next_line()));
        }
        found
    }

    #[test]
    fn lines_are_read_in_any_parts_and_what_does_not_fit_is_refused() {
        let long = [b'1'; 200];
        let text = [
            b"0.5,-1e-3\r\n 1 , 2\narm\n1\n1,2,3\n1,nan\n1,inf\n1,1e99\n1,x\n\n\xff,1\n1,2*03\n"
                .as_slice(),
            &long,
            b"\n3,4\n",
        ]
        .concat();
        let numbers = |numbers: [f32; 2]| Ok(Line::Numbers(numbers.to_vec()));
        let expected = [
            numbers([0.5, -1e-3]),
            numbers([1.0, 2.0]),
            Ok(Line::Arm),
            Err("a line has 1 numbers, the observation has 2"),
            Err("a line has 3 numbers, the observation has 2"),
            Err("a line has \"nan\", which is no finite number"),
            Err("a line has \"inf\", which is no finite number"),
            Err("a line has \"1e99\", which is no finite number"),
            Err("a line has \"x\", which is no finite number"),
            Err("a line has \"\", which is no finite number"),
            Err("a line is not ASCII"),
            Err("a line has \"2*03\", which is no finite number"),
            Err("a line has more than 69 bytes"),
            numbers([3.0, 4.0]),
        ]
        .map(|line| line.unwrap_or_else(|reason: &str| Line::Unreadable(reason.to_owned())));
        for part in [1, 2, 7, 64, text.len()] {
            assert_eq!(lines(&text, 2, false, part), expected, "parts of {part}");
        }
    }

    #[test]
    fn a_line_is_used_if_its_checksum_is_right() {
        // '1' ^ ',' ^ '2' = 0x31 ^ 0x2c ^ 0x32.
        for (line, is_read) in [
            ("1,2*2F", true),
            ("1,2*2f\r", true),
            ("1,3*2F", false),
            ("1,2*2E", false),
            ("1,2*F", false),
            ("1,2", false),
            ("1,2*", false),
            ("*00", false),
            ("", false),
        ] {
            let found = lines(format!("{line}\n").as_bytes(), 2, true, 64);
            let is_numbers = found == [Line::Numbers(vec![1.0, 2.0])];
            assert_eq!(is_numbers, is_read, "{line:?}: {found:?}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_were_written_and_fit_their_limit() {
        let numbers = [
            0.0,
            -0.0,
            0.1,
            -1.234_567_9e-38,
            f32::MAX,
            f32::MIN,
            f32::from_bits(1),
            -0.000_123_456_79,
            -9_999_999.0,
            16_777_217.0,
        ];
        for number in numbers {
            for has_checksum in [false, true] {
                let line = encode(&[number], has_checksum);
                assert!(line.len() < MAX_NUMBER + MAX_END, "{line:?}");
                assert!(line.trim_end().len() < MAX_NUMBER + 3, "{line:?}");
                let found = lines(line.as_bytes(), 1, has_checksum, 3);
                let [Line::Numbers(found)] = &found[..] else {
                    panic!("{found:?}")
                };
                assert_eq!(found[0].to_bits(), number.to_bits(), "{line:?}");
            }
        }
        assert_eq!(encode(&[0.75, -2.0], true), "0.75,-2*2F\n");
    }
}
