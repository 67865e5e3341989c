//! The one module that reads YAML. Two readers: *manifests* as kubectl reads them, *our own config* strictly.
