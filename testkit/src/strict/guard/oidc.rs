//! Client ids of OIDC providers after their creation: the emulator has no call for them (eks.md 7). Blue's pods with a token for
//! `amazonaws.com` need that one on green's provider (eks.md 3).

use std::collections::HashMap;

use crate::strict::State;
use crate::strict::http::{Refusal, Reply, Req, unique_id, xml_reply};
use crate::strict::upstream::text_of;
use crate::strict::xml::Element;

/// Provider -> all its client ids, of providers that were changed.
pub(crate) type ClientIds = HashMap<String, Vec<String>>;

/// The operations that the emulator lacks; `None` for all others.
pub(super) async fn handle(state: &State, req: &Req) -> Option<Reply> {
    let add = match req.action.as_str() {
        "AddClientIDToOpenIDConnectProvider" => true,
        "RemoveClientIDFromOpenIDConnectProvider" => false,
        _ => return None,
    };
    let answer = change(state, req, add).await;
    Some(match answer {
        Ok(()) => xml_reply(
            200,
            format!(
                "<{0}Response xmlns=\"https://iam.amazonaws.com/doc/2010-05-08/\"><ResponseMetadata><RequestId>{1}</RequestId></ResponseMetadata></{0}Response>",
                req.action,
                unique_id()
            ),
        ),
        Err(refusal) => refusal.reply("iam"),
    })
}

async fn change(state: &State, req: &Req, add: bool) -> Result<(), Refusal> {
    let arn = req.form("OpenIDConnectProviderArn").unwrap_or("");
    let client = req.form("ClientID").unwrap_or("").to_owned();
    if !(1..=255).contains(&client.len()) {
        return Err(Refusal::new(
            400,
            "ValidationError",
            format!(
                "1 validation error detected: Value '{client}' at 'clientID' failed to satisfy constraint: Member must have 1 to 255 characters"
            ),
        ));
    }
    let question = [("OpenIDConnectProviderArn", arn)];
    let (status, root) = state
        .ask("iam", &req.who, "GetOpenIDConnectProvider", &question)
        .await;
    if status != 200 {
        return Err(Refusal::new(
            404,
            "NoSuchEntity",
            format!("OpenIDConnect Provider not found for arn {arn}"),
        ));
    }
    let made = root
        .find("ClientIDList")
        .map(|l| l.children.iter().map(|c| c.text.clone()).collect());
    let mut all = state.lock_client_ids();
    let ids = all
        .entry(arn.to_owned())
        .or_insert_with(|| made.unwrap_or_default());
    // Both are idempotent.
    ids.retain(|id| *id != client);
    if add {
        if ids.len() >= 100 {
            return Err(Refusal::new(
                409,
                "LimitExceeded",
                "Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: 100",
            ));
        }
        ids.push(client);
    }
    Ok(())
}

/// GetOpenIDConnectProvider tells them; a deleted provider is forgotten.
pub(super) async fn show(state: &State, req: &Req, reply: Reply) -> Reply {
    let arn = req.form("OpenIDConnectProviderArn").unwrap_or("");
    if req.action == "DeleteOpenIDConnectProvider" {
        state.lock_client_ids().remove(arn);
    }
    if req.action != "GetOpenIDConnectProvider" {
        return reply;
    }
    let Some(ids) = state.lock_client_ids().get(arn).cloned() else {
        return reply;
    };
    let (parts, body) = reply.into_parts();
    let (_, text) = text_of(Reply::new(body)).await;
    let Ok(mut root) = Element::parse(&text) else {
        return Reply::from_parts(parts, http_body_util::Full::new(text.into()));
    };
    for list in root
        .children
        .iter_mut()
        .flat_map(|result| &mut result.children)
        .filter(|c| c.name == "ClientIDList")
    {
        list.children = ids
            .iter()
            .map(|id| Element {
                name: "member".into(),
                text: id.clone(),
                ..Element::default()
            })
            .collect();
    }
    let mut out = String::new();
    root.write(&mut out);
    Reply::from_parts(parts, http_body_util::Full::new(out.into()))
}
