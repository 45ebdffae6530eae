// The public interface of the package.

export { answer, answerQuestion, deliver, fetchCard, openQuestion, type OpenQuestion } from "./answer.js";
export { readLimit, DEFAULT_POLICY, type Limit, type Limits, type Policy } from "./policy.js";
export { Ledger, type Entry, type Spent, type State } from "./ledger.js";
export { readLink, type Link } from "./link.js";
export { Refusal, type Fault } from "./refusal.js";
export { checkPolicy, checkTime, verifyCard, type Expected, type SignedCard, type VerifiedCard } from "./verify.js";
