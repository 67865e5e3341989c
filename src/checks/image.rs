//! Names of container images.

/// An image as a pod names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// Host of the registry; `docker.io` when none is written.
    pub registry: &'a str,
    /// Repository below the registry, as in `ingress-nginx/controller`.
    pub repository: &'a str,
    /// Tag, when written.
    pub tag: Option<&'a str>,
    /// Digest, when written.
    pub digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    /// Takes a name apart.
    pub fn parse(text: &'a str) -> Image<'a> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let slash = name.rfind('/').map_or(0, |n| n + 1);
        let (name, tag) = match name[slash..].find(':') {
            Some(colon) => (&name[..slash + colon], Some(&name[slash + colon + 1..])),
            None => (name, None),
        };
        // Docker's rule: the first part is a host if it has a dot or a port, or is `localhost`.
        let (registry, repository) = match name.split_once('/') {
            Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
            _ => ("docker.io", name),
        };
        Image {
            registry,
            repository,
            tag,
            digest,
        }
    }
    /// Last part of the repository, as in `controller`.
    pub fn name(&self) -> &'a str {
        self.repository
            .rsplit('/')
            .next()
            .unwrap_or(self.repository)
    }
    /// Version by the tag: `v1.2.3`, `1.2`, `nginx-0.30.0`, `1.7.34-alpine`.
    pub fn version(&self) -> Option<(u32, u32, u32)> {
        let tag = self.tag?;
        let tag = tag.strip_prefix("nginx-").unwrap_or(tag);
        let mut numbers = tag
            .trim_start_matches('v')
            .split(['.', '-', '+', '_'])
            .map(|n| n.parse::<u32>().ok());
        let major = numbers.next()??;
        let minor = numbers.next().flatten()?;
        Some((major, minor, numbers.next().flatten().unwrap_or(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::Image;

    #[test]
    fn an_image_is_taken_apart_as_docker_does() {
        let i = Image::parse("registry.shop.test:5000/a/web:1.4@sha256:ab");
        assert_eq!(
            (i.registry, i.repository, i.tag, i.digest),
            (
                "registry.shop.test:5000",
                "a/web",
                Some("1.4"),
                Some("sha256:ab")
            )
        );
        let i = Image::parse("library/nginx");
        assert_eq!((i.registry, i.name(), i.tag), ("docker.io", "nginx", None));
        assert_eq!(Image::parse("localhost/x:y").registry, "localhost");
    }

    #[test]
    fn a_version_is_read_from_tags_as_they_are_written() {
        let v = |t| Image::parse(t).version();
        assert_eq!(v("a:v1.25.3"), Some((1, 25, 3)));
        assert_eq!(v("a:0.30"), Some((0, 30, 0)));
        assert_eq!(v("a:nginx-0.30.0"), Some((0, 30, 0)));
        assert_eq!(v("a:1.7.34-alpine"), Some((1, 7, 34)));
        assert_eq!(v("a:latest"), None);
        assert_eq!(v("a"), None);
    }
}
