//! Which targets become aliases: ExternalDNS's own table of load balancer zones (externaldns.md 4).

/// Suffix, canonical hosted zone id. `<region>.elb.amazonaws.com` are ALB and CLB, `elb.<region>.amazonaws.com` NLB.
const ZONES: &[(&str, &str)] = &[
    ("us-east-2.elb.amazonaws.com", "Z3AADJGX6KTTL2"),
    ("us-east-1.elb.amazonaws.com", "Z35SXDOTRQ7X7K"),
    ("us-west-1.elb.amazonaws.com", "Z368ELLRRE2KJ0"),
    ("us-west-2.elb.amazonaws.com", "Z1H1FL5HABSF5"),
    ("ca-central-1.elb.amazonaws.com", "ZQSVJUPU6J1EY"),
    ("ap-east-1.elb.amazonaws.com", "Z3DQVH9N71FHZ0"),
    ("ap-south-1.elb.amazonaws.com", "ZP97RAFLXTNZK"),
    ("ap-northeast-2.elb.amazonaws.com", "ZWKZPGTI48KDX"),
    ("ap-northeast-3.elb.amazonaws.com", "Z5LXEXXYW11ES"),
    ("ap-southeast-1.elb.amazonaws.com", "Z1LMS91P8CMLE5"),
    ("ap-southeast-2.elb.amazonaws.com", "Z1GM3OXH4ZPM65"),
    ("ap-northeast-1.elb.amazonaws.com", "Z14GRHDCWA56QT"),
    ("eu-central-1.elb.amazonaws.com", "Z215JYRZR1TBD5"),
    ("eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
    ("eu-west-2.elb.amazonaws.com", "ZHURV8PSTC4K8"),
    ("eu-west-3.elb.amazonaws.com", "Z3Q77PNBQS71R4"),
    ("eu-north-1.elb.amazonaws.com", "Z23TAZ6LKFMNIO"),
    ("eu-south-1.elb.amazonaws.com", "Z3ULH7SSC9OV64"),
    ("sa-east-1.elb.amazonaws.com", "Z2P70J7HTTTPLU"),
    ("cn-north-1.elb.amazonaws.com.cn", "Z1GDH35T77C1KE"),
    ("cn-northwest-1.elb.amazonaws.com.cn", "ZM7IZAIOVVDZF"),
    ("us-gov-west-1.elb.amazonaws.com", "Z33AYJ8TM3BH4J"),
    ("us-gov-east-1.elb.amazonaws.com", "Z166TLBEWOO7G0"),
    ("me-south-1.elb.amazonaws.com", "ZS929ML54UICD"),
    ("af-south-1.elb.amazonaws.com", "Z268VQBMOI5EKX"),
    ("elb.us-east-2.amazonaws.com", "ZLMOA37VPKANP"),
    ("elb.us-east-1.amazonaws.com", "Z26RNL4JYFTOTI"),
    ("elb.us-west-1.amazonaws.com", "Z24FKFUX50B4VW"),
    ("elb.us-west-2.amazonaws.com", "Z18D5FSROUN65G"),
    ("elb.ca-central-1.amazonaws.com", "Z2EPGBW3API2WT"),
    ("elb.ap-east-1.amazonaws.com", "Z12Y7K3UBGUAD1"),
    ("elb.ap-south-1.amazonaws.com", "ZVDDRBQ08TROA"),
    ("elb.ap-northeast-2.amazonaws.com", "ZIBE1TIR4HY56"),
    ("elb.ap-southeast-1.amazonaws.com", "ZKVM4W9LS7TM"),
    ("elb.ap-southeast-2.amazonaws.com", "ZCT6FZBF4DROD"),
    ("elb.ap-northeast-1.amazonaws.com", "Z31USIVHYNEOWT"),
    ("elb.eu-central-1.amazonaws.com", "Z3F0SRJ5LGBH90"),
    ("elb.eu-west-1.amazonaws.com", "Z2IFOLAFXWLO4F"),
    ("elb.eu-west-2.amazonaws.com", "ZD4D7Y8KGAS4G"),
    ("elb.eu-west-3.amazonaws.com", "Z1CMS0P5QUZ6D5"),
    ("elb.eu-north-1.amazonaws.com", "Z1UDT6IFJ4EJM"),
    ("elb.eu-south-1.amazonaws.com", "Z23146JA1KNAFP"),
    ("elb.sa-east-1.amazonaws.com", "ZTK26PT1VY4CU"),
    ("elb.cn-north-1.amazonaws.com.cn", "Z3QFB96KMJ7ED6"),
    ("elb.cn-northwest-1.amazonaws.com.cn", "ZQEIKTCZ8352D"),
    ("elb.us-gov-west-1.amazonaws.com", "ZMG1MZ2THAWF1"),
    ("elb.us-gov-east-1.amazonaws.com", "Z1ZSMQQ6Q24QQ8"),
    ("elb.me-south-1.amazonaws.com", "Z3QSRYVP46NYYV"),
    ("elb.af-south-1.amazonaws.com", "Z203XCE67M25HM"),
    ("awsglobalaccelerator.com", "Z2BJ6XQ5FK7U4H"),
];

/// Hosted zone id of a load balancer's host name; `None` for a target that becomes a plain CNAME.
pub fn canonical_zone(target: &str) -> Option<&'static str> {
    let t = target.trim_end_matches('.').to_lowercase();
    ZONES
        .iter()
        .find(|(suffix, _)| t.ends_with(suffix))
        .map(|(_, id)| *id)
}
