export default function Arena() {
  return null;
}
