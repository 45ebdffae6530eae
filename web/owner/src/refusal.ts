// The reasons for which a card is not answered.

/** The kind of problem, for programs; the message is for people. */
export type Fault =
  | "form"
  | "canonical"
  | "name"
  | "signer"
  | "signature"
  | "question"
  | "mechanism"
  | "claim"
  | "window"
  | "closed"
  | "aggregators"
  | "unlisted"
  | "limit"
  | "budget"
  | "enrolment"
  | "answered"
  | "browser"
  | "network";

export class Refusal extends Error {
  constructor(
    readonly fault: Fault,
    message: string,
  ) {
    super(message);
    this.name = "Refusal";
  }
}
