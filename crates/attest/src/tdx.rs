//! Quotes of Intel TDX, verified by `dcap-qvl` with the policy's collateral: signature,
//! certificates, revocation lists, the present state of the platform.

use crate::policy::{Policy, TdxPolicy};
use crate::{Claims, Reason, Refused, hex};
use dcap_qvl::quote::TDReport10;
use dcap_qvl::tcb_info::TcbInfo;
use dcap_qvl::verify::{QuoteVerifier, VerifiedReport};
use evidence::Document;

/// What a genuine quote says, and the measurements that the policy accepts.
pub(crate) fn claims<'p>(
    document: &Document,
    policy: &'p Policy,
    now: u64,
) -> Result<(Claims, &'p [String]), Refused> {
    let none = || Refused::new(Reason::Kind, "the policy has no section [tdx]");
    let policy = policy.tdx.as_ref().ok_or_else(none)?;
    let missing = || Refused::new(Reason::Collateral, "there is no collateral");
    let collateral = policy.loaded.as_ref().ok_or_else(missing)?;
    let verified = QuoteVerifier::new_prod().verify(&document.report, collateral, now);
    let verified =
        verified.map_err(|e| Refused::new(reason(&format!("{e:#}")), format!("{e:#}")))?;
    let report = verified.report.as_td10();
    let report = report.ok_or_else(|| Refused::new(Reason::Kind, "the quote is not of TDX"))?;
    check(policy, &verified, report)?;
    check_evaluation(policy, &collateral.tcb_info)?;
    // Bit 0: the guest can be debugged. The library refuses this, too.
    let debug = report.td_attributes.first().is_none_or(|b| b & 1 != 0);
    let claims = Claims {
        measurement: report.mr_td.to_vec(),
        data: report.report_data,
        debug,
        versions: format!("{}, TCB {}", verified.status, hex(&report.tee_tcb_svn)),
    };
    Ok((claims, &policy.measurements))
}

fn check(
    policy: &TdxPolicy,
    verified: &VerifiedReport,
    report: &TDReport10,
) -> Result<(), Refused> {
    if policy.revokes(&verified.ppid) {
        return Err(Refused::new(
            Reason::Revoked,
            "the policy revokes the platform",
        ));
    }
    if !policy.statuses.contains(&verified.status) {
        return Err(Refused::new(
            Reason::Version,
            format!(
                "the platform is {} ({})",
                verified.status,
                verified.advisory_ids.join(", ")
            ),
        ));
    }
    let found = [report.rt_mr0, report.rt_mr1, report.rt_mr2, report.rt_mr3];
    for (number, wanted) in policy.rtmrs.iter().enumerate() {
        let found = found.get(number).map(|rtmr| hex(rtmr));
        if !wanted.is_empty() && found.as_deref() != Some(&wanted.to_ascii_lowercase()) {
            return Err(Refused::new(
                Reason::Measurement,
                format!("RTMR{number} is {}", found.unwrap_or_default()),
            ));
        }
    }
    Ok(())
}

/// According to the collateral of an older evaluation, old firmware is up to date.
fn check_evaluation(policy: &TdxPolicy, tcb_info: &str) -> Result<(), Refused> {
    let unreadable = || Refused::new(Reason::Collateral, "the collateral cannot be read");
    let info: TcbInfo = serde_json::from_str(tcb_info).map_err(|_| unreadable())?;
    match info.tcb_evaluation_data_number >= policy.minimum_evaluation {
        true => Ok(()),
        false => Err(Refused::new(
            Reason::Version,
            format!(
                "the collateral is of evaluation {}, the policy wants {}",
                info.tcb_evaluation_data_number, policy.minimum_evaluation
            ),
        )),
    }
}

/// The library gives reasons only as text. An unknown one is reported as an alteration; the
/// evidence is refused in any case.
fn reason(text: &str) -> Reason {
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match () {
        () if has(&["revoked"]) => Reason::Revoked,
        () if has(&["expired", "in the future", "notvalidyet", "not yet valid"]) => Reason::Expired,
        () if has(&["debug"]) => Reason::Debug,
        // Older than the oldest level that Intel knows.
        () if has(&["no matching tcb level"]) => Reason::Version,
        () if has(&[
            "fmspc mismatch",
            "tcb info",
            "tcbinfo",
            "qe identity",
            "collateral",
        ]) =>
        {
            Reason::Collateral
        }
        () => Reason::Altered,
    }
}
