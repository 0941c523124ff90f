//! A writer of GGUF files that writes whatever it is given, right or wrong.

/// The contents of the file.
#[derive(Clone)]
pub struct Writer {
    pub version: u32,
    /// Names, types and the bytes of values.
    pub keys: Vec<(Vec<u8>, u32, Vec<u8>)>,
    pub tensors: Vec<Entry>,
    pub alignment: usize,
}

/// A tensor's description and its bytes; the dimensions are innermost first.
#[derive(Clone)]
pub struct Entry {
    pub name: String,
    pub dimensions: Vec<u64>,
    pub kind: u32,
    /// Its offset among the tensors; after the previous ones if absent.
    pub start: Option<u64>,
    pub data: Vec<u8>,
}

/// A text in the encoding of values.
pub fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

/// Numbers as bytes.
pub fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

impl Writer {
    pub fn new() -> Writer {
        Writer {
            version: 3,
            keys: Vec::new(),
            tensors: Vec::new(),
            alignment: 32,
        }
    }

    /// Sets a key; types are 4 for u32, 6 for f32, 7 for bool, 8 for a text, 9 for an array.
    pub fn set(&mut self, name: &str, kind: u32, value: &[u8]) {
        self.keys.retain(|(other, ..)| other != name.as_bytes());
        self.keys
            .push((name.as_bytes().to_vec(), kind, value.to_vec()));
    }

    /// Adds a tensor of f32.
    pub fn add(&mut self, name: &str, shape: &[usize], numbers: &[f32]) {
        let dimensions = shape.iter().rev().map(|size| *size as u64).collect();
        self.tensors.push(Entry {
            name: name.to_owned(),
            dimensions,
            kind: 0,
            start: None,
            data: floats(numbers),
        });
    }

    pub fn write(&self) -> Vec<u8> {
        let mut bytes = [&b"GGUF"[..], &self.version.to_le_bytes()].concat();
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.keys.len() as u64).to_le_bytes());
        for (name, kind, value) in &self.keys {
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name);
            bytes.extend(kind.to_le_bytes());
            bytes.extend(value);
        }
        let mut data = Vec::new();
        for tensor in &self.tensors {
            data.resize(data.len().next_multiple_of(self.alignment), 0);
            bytes.extend(text(&tensor.name));
            bytes.extend((tensor.dimensions.len() as u32).to_le_bytes());
            tensor
                .dimensions
                .iter()
                .for_each(|size| bytes.extend(size.to_le_bytes()));
            bytes.extend(tensor.kind.to_le_bytes());
            bytes.extend(tensor.start.unwrap_or(data.len() as u64).to_le_bytes());
            data.extend(&tensor.data);
        }
        bytes.resize(bytes.len().next_multiple_of(self.alignment), 0);
        [bytes, data].concat()
    }
}

/// A Llama of 1 layer, 8 tokens and width 4, whose weights are all a half.
pub fn llama() -> Writer {
    let mut file = Writer::new();
    file.set("general.architecture", 8, &text("llama"));
    let sizes = [
        ("context_length", 16u32),
        ("embedding_length", 4),
        ("block_count", 1),
        ("feed_forward_length", 6),
        ("vocab_size", 8),
    ];
    for (key, size) in sizes.into_iter().chain([
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("rope.dimension_count", 2),
    ]) {
        file.set(&format!("llama.{key}"), 4, &size.to_le_bytes());
    }
    for (key, number) in [
        ("rope.freq_base", 1e4f32),
        ("attention.layer_norm_rms_epsilon", 1e-5),
    ] {
        file.set(&format!("llama.{key}"), 6, &number.to_le_bytes());
    }
    let tensors: [(&str, &[usize]); 11] = [
        ("token_embd", &[8, 4]),
        ("output_norm", &[4]),
        ("blk.0.attn_norm", &[4]),
        ("blk.0.attn_q", &[4, 4]),
        ("blk.0.attn_k", &[2, 4]),
        ("blk.0.attn_v", &[2, 4]),
        ("blk.0.attn_output", &[4, 4]),
        ("blk.0.ffn_norm", &[4]),
        ("blk.0.ffn_gate", &[6, 4]),
        ("blk.0.ffn_up", &[6, 4]),
        ("blk.0.ffn_down", &[4, 6]),
    ];
    for (name, shape) in tensors {
        file.add(
            &format!("{name}.weight"),
            shape,
            &vec![0.5; shape.iter().product()],
        );
    }
    file
}
