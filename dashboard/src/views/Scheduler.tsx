export default function Scheduler() {
  return null;
}
