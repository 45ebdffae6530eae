//! Predicates as people write them who know another language: SQL, Python, a spreadsheet, a word processor.
//!
//! A text is cut into words, texts in quotation marks and signs, and each is replaced by its spelling in CEL. Whether the
//! outcome is a predicate is for the parser to say.

/// The text with the spelling of CEL: `==` for `=`, `&&` for `and`, straight double quotation marks.
pub(crate) fn corrected(text: &str) -> String {
    let mut writer = Writer::default();
    for token in tokens(text) {
        writer.write(&token);
    }
    writer.finish()
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Blank,
    Word(String),
    /// The content of a text in quotation marks.
    Quoted(String),
    Sign(String),
}

/// Pairs of quotation marks, as keyboards and word processors make them.
const QUOTATION_MARKS: [(char, &[char]); 6] =
    [('"', &['"']), ('\'', &['\'']), ('“', &['”', '“']), ('„', &['“', '”']), ('‘', &['’', '‘']), ('«', &['»'])];

fn tokens(text: &str) -> Vec<Token> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut place = 0;
    while place < letters.len() {
        let (token, length) = first_token(&letters[place..]);
        tokens.push(token);
        place += length;
    }
    tokens
}

/// The first token of a text that is not empty, and how many characters it takes.
fn first_token(letters: &[char]) -> (Token, usize) {
    let first = letters[0];
    let run = |belongs: fn(char) -> bool| letters.iter().take_while(|letter| belongs(**letter)).count();
    let closing = QUOTATION_MARKS.iter().find(|(open, _)| *open == first).map(|(_, closing)| *closing);
    let end = closing.and_then(|closing| letters[1..].iter().position(|letter| closing.contains(letter)));
    if let Some(length) = end {
        return (Token::Quoted(letters[1..=length].iter().collect()), length + 2);
    }
    let text = |length: usize| letters[..length].iter().collect::<String>();
    match first {
        _ if first.is_whitespace() => (Token::Blank, run(char::is_whitespace)),
        _ if is_word(first) => (Token::Word(text(run(is_word))), run(is_word)),
        _ if is_comparing(first) => (Token::Sign(text(run(is_comparing))), run(is_comparing)),
        _ => (Token::Sign(first.to_string()), 1),
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '.'
}

fn is_comparing(letter: char) -> bool {
    "=<>!&|".contains(letter)
}

#[derive(Default)]
struct Writer {
    text: String,
    /// The brackets that are open where each `not` began, which has a bracket of its own.
    negations: Vec<usize>,
    open: usize,
    after_not: bool,
}

impl Writer {
    fn write(&mut self, token: &Token) {
        let spelled = spelled(token);
        if std::mem::take(&mut self.after_not) {
            match spelled.as_str() {
                " " => return self.after_not = true,
                "(" => {}
                _ => {
                    self.text.push('(');
                    self.negations.push(self.open);
                }
            }
        }
        match spelled.as_str() {
            "&&" | "||" => self.end_negations(),
            "(" => self.open += 1,
            ")" => {
                self.end_negations();
                self.open = self.open.saturating_sub(1);
            }
            _ => {}
        }
        self.after_not = matches!(token, Token::Word(_)) && spelled == "!";
        self.text += &spelled;
    }

    /// Closes the brackets of what is negated at this depth; the blank before an operator stays outside.
    fn end_negations(&mut self) {
        while self.negations.last() == Some(&self.open) {
            self.negations.pop();
            let end = self.text.trim_end().len();
            self.text.insert(end, ')');
        }
    }

    fn finish(mut self) -> String {
        self.end_negations();
        self.text.trim().to_owned()
    }
}

fn spelled(token: &Token) -> String {
    match token {
        Token::Blank => " ".to_owned(),
        Token::Quoted(text) => format!("\"{}\"", text.replace('"', "\\\"")),
        Token::Word(word) => match word.to_ascii_lowercase().as_str() {
            "and" => "&&".to_owned(),
            "or" => "||".to_owned(),
            "not" => "!".to_owned(),
            "is" | "equals" => "==".to_owned(),
            _ => word.clone(),
        },
        Token::Sign(sign) => match sign.as_str() {
            "=" | "===" => "==",
            "<>" | "!==" | "≠" => "!=",
            "=>" | "≥" => ">=",
            "=<" | "≤" => "<=",
            "&" | "∧" => "&&",
            "|" | "∨" => "||",
            other => other,
        }
        .to_owned(),
    }
}
