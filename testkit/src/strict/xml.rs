//! A small XML tree: enough for the bodies of the AWS query and REST-XML protocols.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// One element: its local name, its own text and its children in order. Attributes carry nothing in these protocols.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    /// Reads one document. The error says where reading stopped (byte offset).
    pub fn parse(text: &str) -> Result<Element, String> {
        let mut reader = Reader::from_str(text);
        let mut stack: Vec<Element> = vec![Element::default()];
        loop {
            let at = reader.buffer_position();
            let fail = |what: String| format!("{what} at byte {at}");
            match reader.read_event().map_err(|e| fail(e.to_string()))? {
                Event::Start(tag) => stack.push(Element {
                    name: local_name(tag.local_name().as_ref()),
                    ..Element::default()
                }),
                Event::Empty(tag) => {
                    let element = Element {
                        name: local_name(tag.local_name().as_ref()),
                        ..Element::default()
                    };
                    if let Some(parent) = stack.last_mut() {
                        parent.children.push(element);
                    }
                }
                Event::End(_) => {
                    let Some(mut element) = stack.pop() else {
                        return Err(fail("an element ends that never began".into()));
                    };
                    if !element.children.is_empty() {
                        // Only indentation stands between children.
                        element.text.clear();
                    }
                    match stack.last_mut() {
                        Some(parent) => parent.children.push(element),
                        None => return Err(fail("an element ends that never began".into())),
                    }
                }
                Event::Text(text) => {
                    let text = text.decode().map_err(|e| fail(e.to_string()))?;
                    if let Some(element) = stack.last_mut() {
                        element.text.push_str(&text);
                    }
                }
                Event::CData(text) => {
                    let text = text.decode().map_err(|e| fail(e.to_string()))?;
                    if let Some(element) = stack.last_mut() {
                        element.text.push_str(&text);
                    }
                }
                Event::GeneralRef(reference) => {
                    let name = reference.decode().map_err(|e| fail(e.to_string()))?;
                    let resolved = match reference
                        .resolve_char_ref()
                        .map_err(|e| fail(e.to_string()))?
                    {
                        Some(character) => character.to_string(),
                        None => resolve_predefined_entity(&name)
                            .ok_or_else(|| fail(format!("unknown entity &{name};")))?
                            .to_owned(),
                    };
                    if let Some(element) = stack.last_mut() {
                        element.text.push_str(&resolved);
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let mut root = stack.pop().unwrap_or_default();
        if !stack.is_empty() || root.children.len() != 1 {
            return Err("the document has no single, closed root element".into());
        }
        Ok(root.children.remove(0))
    }

    /// The first child of that name.
    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|c| c.name == name)
    }

    /// The text of the first child of that name.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.child(name).map(|c| c.text.as_str())
    }

    /// The first element of that name anywhere below (or this one).
    pub fn find(&self, name: &str) -> Option<&Element> {
        if self.name == name {
            return Some(self);
        }
        self.children.iter().find_map(|c| c.find(name))
    }

    /// Every element of that name anywhere below, in document order, not looking inside a hit.
    pub fn find_all<'a>(&'a self, name: &str, into: &mut Vec<&'a Element>) {
        for child in &self.children {
            if child.name == name {
                into.push(child);
            } else {
                child.find_all(name, into);
            }
        }
    }

    /// Writes the element back without white space.
    pub fn write(&self, out: &mut String) {
        open(out, &self.name);
        if self.children.is_empty() {
            out.push_str(&escape(&self.text));
        }
        for child in &self.children {
            child.write(out);
        }
        close(out, &self.name);
    }
}

fn local_name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Escapes text for an element's content.
pub fn escape(text: &str) -> String {
    quick_xml::escape::escape(text).into_owned()
}

/// Appends `<name>`.
pub fn open(out: &mut String, name: &str) {
    out.push('<');
    out.push_str(name);
    out.push('>');
}

/// Appends `</name>`.
pub fn close(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Appends `<name>text</name>`.
pub fn leaf(out: &mut String, name: &str, text: &str) {
    open(out, name);
    out.push_str(&escape(text));
    close(out, name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_and_nesting_are_read_as_the_sender_meant_them() {
        let tree = Element::parse(
            "<?xml version=\"1.0\"?>\n<a xmlns=\"urn:x\">\n <b>&quot;x &amp; y&#33;&quot;</b><c/>\n</a>",
        )
        .expect("tree");
        assert_eq!(tree.text_of("b"), Some("\"x & y!\""));
        assert_eq!(tree.children.len(), 2);
        assert_eq!(tree.text, "");
    }

    #[test]
    fn a_cut_off_document_is_an_error() {
        assert!(Element::parse("<a><b>x</b>").is_err());
        assert!(Element::parse("").is_err());
    }
}
