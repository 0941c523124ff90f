//! Builds the syntax tree from tokens.

mod declaration;
mod statement;

use crate::error::Error;
use crate::syntax::{Entry, Module};
use crate::token::{Spanned, Token, tokenize};

/// Parses the text of one module.
pub(crate) fn parse(source: &str) -> Result<Module<'_>, Error> {
    let tokens = tokenize(source)?;
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
    };
    parser.module()
}

struct Parser<'a> {
    source: &'a str,
    tokens: Vec<Spanned<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).map(|spanned| spanned.token)
    }

    fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at + 1).map(|spanned| spanned.token)
    }

    fn line(&self) -> u32 {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens
            .get(self.at.min(last))
            .map_or(1, |spanned| spanned.line)
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::parse(self.line(), message)
    }

    fn expected(&self, what: &str) -> Error {
        match self.peek() {
            Some(token) => self.error(format!("{what} expected, found {token:?}")),
            None => self.error(format!("{what} expected, found the end of the text")),
        }
    }

    fn accept(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), Error> {
        if self.accept(mark) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{mark}`")))
        }
    }

    fn accept_dotted(&mut self, name: &str) -> bool {
        let found = self.peek() == Some(Token::Dotted(name));
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> Result<&'a str, Error> {
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.expected("a name"));
        };
        self.at += 1;
        Ok(word)
    }

    fn integer(&mut self) -> Result<u64, Error> {
        let Some(Token::Integer(value)) = self.peek() else {
            return Err(self.expected("an integer"));
        };
        self.at += 1;
        Ok(value)
    }

    fn small_integer(&mut self) -> Result<u32, Error> {
        let value = self.integer()?;
        u32::try_from(value).map_err(|_| self.error(format!("{value} is too large here")))
    }

    fn signed(&mut self) -> Result<i64, Error> {
        let is_negative = self.accept('-');
        let value = self.integer()? as i64;
        Ok(if is_negative {
            value.wrapping_neg()
        } else {
            value
        })
    }

    fn module(&mut self) -> Result<Module<'a>, Error> {
        let mut module = Module {
            version: self.version()?,
            target: self.target()?,
            variables: Vec::new(),
            entries: Vec::new(),
        };
        self.address_size()?;
        while self.peek().is_some() {
            self.module_item(&mut module)?;
        }
        Ok(module)
    }

    fn version(&mut self) -> Result<(u32, u32), Error> {
        if !self.accept_dotted("version") {
            return Err(self.expected("`.version` as the first directive"));
        }
        let start = self.at;
        let Some(Token::Double(_)) = self.peek() else {
            return Err(self.expected("a version such as 8.0"));
        };
        self.at += 1;
        let span = self.tokens[start];
        let text = &self.source[span.start..span.end];
        text.split_once('.')
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| self.error(format!("malformed version `{text}`")))
    }

    fn target(&mut self) -> Result<u32, Error> {
        if !self.accept_dotted("target") {
            return Err(self.expected("`.target` after `.version`"));
        }
        let name = self.word()?;
        let digits = name.strip_prefix("sm_").unwrap_or("");
        let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
        let target = digits
            .parse()
            .map_err(|_| self.error(format!("unknown target `{name}`")))?;
        while self.accept(',') {
            self.word()?;
        }
        Ok(target)
    }

    fn address_size(&mut self) -> Result<(), Error> {
        if !self.accept_dotted("address_size") {
            return Err(self.expected("`.address_size 64`"));
        }
        match self.integer()? {
            64 => Ok(()),
            other => Err(self.error(format!("address size {other}: only 64 is covered"))),
        }
    }

    fn module_item(&mut self, module: &mut Module<'a>) -> Result<(), Error> {
        if self.skip_debug_directive()? {
            return Ok(());
        }
        let is_extern = self.linkage();
        if self.accept_dotted("entry") {
            module.entries.push(self.entry()?);
            return Ok(());
        }
        if self.peek() == Some(Token::Dotted("func")) {
            return Err(self.error("`.func` is outside the covered subset"));
        }
        let variables = self.variables(is_extern)?;
        module.variables.extend(variables);
        Ok(())
    }

    fn linkage(&mut self) -> bool {
        let mut is_extern = false;
        loop {
            if self.accept_dotted("extern") {
                is_extern = true;
            } else if !(self.accept_dotted("visible") || self.accept_dotted("weak")) {
                return is_extern;
            }
        }
    }

    /// Skips `.file`, `.loc` and `.pragma`, which change no result.
    fn skip_debug_directive(&mut self) -> Result<bool, Error> {
        if self.accept_dotted("file") {
            self.integer()?;
            self.skip_text()?;
            while self.accept(',') {
                self.integer()?;
            }
            return Ok(true);
        }
        if self.accept_dotted("loc") {
            for _ in 0..3 {
                self.integer()?;
            }
            return Ok(true);
        }
        if self.accept_dotted("pragma") {
            self.skip_text()?;
            while self.accept(',') {
                self.skip_text()?;
            }
            self.expect(';')?;
            return Ok(true);
        }
        Ok(false)
    }

    fn skip_text(&mut self) -> Result<(), Error> {
        let Some(Token::Text(_)) = self.peek() else {
            return Err(self.expected("a string"));
        };
        self.at += 1;
        Ok(())
    }

    fn entry(&mut self) -> Result<Entry<'a>, Error> {
        let line = self.line();
        let mut entry = Entry {
            name: self.word()?,
            line,
            params: self.params()?,
            max_threads: None,
            required_block: None,
            body: Vec::new(),
        };
        self.performance_directives(&mut entry)?;
        self.expect('{')?;
        self.body(&mut entry.body)?;
        Ok(entry)
    }

    fn performance_directives(&mut self, entry: &mut Entry<'a>) -> Result<(), Error> {
        loop {
            if self.accept_dotted("maxntid") {
                let [x, y, z] = self.extent()?;
                entry.max_threads = Some(x.saturating_mul(y).saturating_mul(z));
            } else if self.accept_dotted("reqntid") {
                entry.required_block = Some(self.extent()?);
            } else if ["minnctapersm", "maxnctapersm", "maxnreg"]
                .iter()
                .any(|name| self.accept_dotted(name))
            {
                self.integer()?;
            } else if !self.skip_debug_directive()? {
                return Ok(());
            }
        }
    }

    fn extent(&mut self) -> Result<[u32; 3], Error> {
        let mut extent = [self.small_integer()?, 1, 1];
        for side in &mut extent[1..] {
            if !self.accept(',') {
                break;
            }
            *side = self.small_integer()?;
        }
        Ok(extent)
    }
}
